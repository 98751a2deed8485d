// Files that cannot be replaced, and folders in which nothing can be renamed.
#include "storage/files/replaceable.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <string>

#include "shale/mapped_file.hpp"
#include "storage/files/file_descriptor.hpp"
#include "support/failures.hpp"
#include "support/scratch_directory.hpp"

namespace shale::detail {
namespace {

class Replaceable : public testing::Test {
 protected:
  Replaceable() { test::write_file(path_, "old"); }

  static struct stat status_of(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status;
  }

  const test::scratch_directory files_;
  const std::string path_ = files_ / "old";
};

// Gives a file or a folder a flag of chattr(1) while it lives.
class flagged {
 public:
  flagged(const std::string& path, int flag) : file_(open_descriptor(path, O_RDONLY)) {
    is_set_ = ::ioctl(file_.get(), FS_IOC_GETFLAGS, &before_) == 0;
    const int wanted = before_ | flag;
    is_set_ = is_set_ && ::ioctl(file_.get(), FS_IOC_SETFLAGS, &wanted) == 0;
  }
  ~flagged() {
    if (is_set_) ::ioctl(file_.get(), FS_IOC_SETFLAGS, &before_);
  }
  flagged(const flagged&) = delete;
  flagged& operator=(const flagged&) = delete;

  bool is_set() const { return is_set_; }

 private:
  file_descriptor file_;
  int before_ = 0;
  bool is_set_ = false;
};

TEST_F(Replaceable, FilesAreByTheirOwner) {
  require_replaceable(path_, status_of(path_));
  require_renames(files_.path(), path_);
  require_renames(files_ / "none", path_);
  create_file(path_, 20, {.existing = existing_file::replace});
  EXPECT_EQ(status_of(path_).st_size, 20);
}

TEST_F(Replaceable, FilesInStickyFoldersAreByOwnersAndByRoot) {
  struct stat folder {};
  struct stat file {};
  folder.st_uid = 1000;
  file.st_uid = 2000;
  for (const mode_t mode : {01777, 0777}) {
    folder.st_mode = S_IFDIR | mode;
    for (const uid_t user : {0u, 1000u, 2000u, 3000u})
      EXPECT_EQ(is_kept_by_sticky_folder(folder, file, user), mode == 01777 && user == 3000)
          << user;
  }
}

TEST_F(Replaceable, FilesAreNotIfTheyAreImmutableOrAppendOnly) {
  for (const int flag : {FS_IMMUTABLE_FL, FS_APPEND_FL}) {
    const flagged kept(path_, flag);
    if (!kept.is_set()) GTEST_SKIP() << "only root may set flags, and not on all file systems";
    test::outcome went = test::outcome_of([&] { require_replaceable(path_, status_of(path_)); });
    EXPECT_EQ(went.code, errc::access_denied);
    EXPECT_NE(went.text.find("chattr"), std::string::npos) << went.text;
    went = test::outcome_of([&] { create_file(path_, 20, {.existing = existing_file::replace}); });
    EXPECT_EQ(went.code, errc::access_denied);
    EXPECT_NE(went.text.find("chattr"), std::string::npos) << went.text;
    EXPECT_EQ(files_.names().size(), 1u);
  }
}

// Even its own temporary file could neither be renamed nor removed there.
TEST_F(Replaceable, NamesAreNotInAppendOnlyFolders) {
  const flagged folder(files_.path(), FS_APPEND_FL);
  if (!folder.is_set()) GTEST_SKIP() << "only root may set flags, and not on all file systems";
  const test::outcome went = test::outcome_of(
      [&] { create_file(files_ / "new", 20, {.existing = existing_file::replace}); });
  EXPECT_EQ(went.code, errc::access_denied);
  EXPECT_NE(went.text.find("append-only"), std::string::npos) << went.text;
  EXPECT_EQ(files_.names().size(), 1u);
}

}  // namespace
}  // namespace shale::detail
