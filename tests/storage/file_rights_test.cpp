// The rights that a new file gets from the file that it replaces.
#include "storage/files/file_rights.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <utility>

#include "shale/mapped_file.hpp"
#include "storage/files/file_descriptor.hpp"
#include "support/access_lists.hpp"
#include "support/scratch_directory.hpp"

namespace shale::detail {
namespace {

class FileRights : public testing::Test {
 protected:
  static struct stat status_of(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status;
  }
  static mode_t mode_of(const std::string& path) { return status_of(path).st_mode & 07777; }
  file_rights old_rights() const {
    const struct stat status = status_of(old_);
    return {status, access_list::of(AT_FDCWD, old_.c_str(), status)};
  }
  file_descriptor make_new() const {
    std::filesystem::remove(new_);
    return open_descriptor(new_, O_RDWR | O_CREAT | O_EXCL, 0600);
  }
  void make_old(mode_t mode) const {
    test::write_file(old_, "old");
    ASSERT_EQ(::chmod(old_.c_str(), mode), 0);
  }

  const test::scratch_directory files_;
  const std::string old_ = files_ / "old";
  const std::string new_ = files_ / "new";
};

// What the old group may do differs from what all others may.
TEST_F(FileRights, InAnotherGroupAreThoseThatGroupAndOthersShare) {
  for (const auto& [mode, wanted] :
       {std::pair{0640u, 0600u}, {0604u, 0600u}, {0664u, 0644u}, {0675u, 0655u}}) {
    SCOPED_TRACE(mode);
    make_old(mode);
    const file_descriptor made = make_new();
    give_rights(made.get(), old_rights().status.st_gid + 1, old_rights(), mode);
    EXPECT_EQ(mode_of(new_), wanted);
    give_rights(made.get(), old_rights().status.st_gid, old_rights(), mode);
    EXPECT_EQ(mode_of(new_), mode);
  }
}

TEST_F(FileRights, AreThoseOfTheOwnerAloneIfTheNameLeadsToAnotherFile) {
  make_old(0664);
  const struct stat status = status_of(old_);
  std::filesystem::rename(old_, files_ / "taken");
  make_old(0664);
  std::filesystem::create_symlink("taken", files_ / "link");
  for (const char* const name : {"old", "link", "none"}) {
    SCOPED_TRACE(name);
    const access_list list = access_list::of(AT_FDCWD, (files_ / name).c_str(), status);
    EXPECT_FALSE(list.is_absent());
    const file_descriptor made = make_new();
    EXPECT_FALSE(list.give_to(made.get()));
    give_rights(made.get(), status.st_gid, {status, list}, 0664);
    EXPECT_EQ(mode_of(new_), 0600u);
  }
}

class AccessList : public FileRights {
 protected:
  void SetUp() override {
    make_old(0600);
    const int failure = test::set_access_list(old_, list_);
    if (failure == EOPNOTSUPP) GTEST_SKIP() << "this file system has no access lists";
    ASSERT_EQ(failure, 0);
  }

  const std::string list_ = test::access_list_bytes({.others = 4});
};

TEST_F(AccessList, IsHandedOn) {
  const file_descriptor made = make_new();
  give_rights(made.get(), old_rights().status.st_gid, old_rights(), 0664);
  EXPECT_EQ(test::read_access_list(new_), list_);
  EXPECT_EQ(mode_of(new_), 0664u);
  EXPECT_EQ(access_list::of(made.get()), old_rights().list);
  EXPECT_FALSE(old_rights().list.is_absent());
}

// The list has an entry for the group of the old file.
TEST_F(AccessList, IsNotHandedOnToAFileOfAnotherGroup) {
  const file_descriptor made = make_new();
  give_rights(made.get(), old_rights().status.st_gid + 1, old_rights(), 0664);
  EXPECT_EQ(test::read_access_list(new_), "");
  EXPECT_EQ(mode_of(new_), 0600u);
}

TEST_F(AccessList, OfTheFolderIsNotKept) {
  make_old(0640);
  ASSERT_EQ(test::set_access_list(files_.path(), list_, test::list_for_new_files), 0);
  const file_descriptor made = make_new();
  ASSERT_NE(test::read_access_list(new_), "");
  give_rights(made.get(), old_rights().status.st_gid, old_rights(), 0640);
  EXPECT_EQ(test::read_access_list(new_), "");
  EXPECT_EQ(mode_of(new_), 0640u);
}

// The mode of the call limits the list.
TEST_F(AccessList, IsTakenOverByAFileThatIsCreatedInThePlaceOfAnother) {
  create_file(old_, 20, {.existing = existing_file::replace, .mode = 0640});
  EXPECT_EQ(test::read_access_list(old_), test::access_list_bytes({.mask = 4}));
  EXPECT_EQ(mode_of(old_), 0640u);
}

}  // namespace
}  // namespace shale::detail
