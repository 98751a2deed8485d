#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "interop/foreign_formats.hpp"
#include "shale/error.hpp"
#include "shale/npy.hpp"
#include "shale/npz.hpp"
#include "shale/raw.hpp"
#include "shale/unfinished_file.hpp"
#include "support/access_lists.hpp"
#include "support/allocation_turns.hpp"
#include "support/bounded.hpp"
#include "support/failures.hpp"
#include "support/instrumented.hpp"
#include "support/last_calls.hpp"
#include "support/nameless_file.hpp"
#include "support/ordinary_user.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

class UnfinishedFile : public testing::Test {
 protected:
  std::string target() const { return directory_ + "/x.png"; }
  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
  }
  static std::string read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::ptrdiff_t files() const {
    return std::distance(std::filesystem::directory_iterator(directory_), {});
  }

  const test::scratch_directory scratch_;
  const std::string directory_ = scratch_.path();
};

// Set-ID bits of the replaced file are not copied.
TEST_F(UnfinishedFile, DoesNotTakeOverSetUserIdSetGroupIdAndSticky) {
  for (const mode_t special : {04755, 02755, 01755, 06710}) {
    write(target(), "old");
    ASSERT_EQ(::chmod(target().c_str(), special), 0);
    unfinished_file file(target(), existing_file::replace);
    write(file.path(), "new");
    file.publish();
    struct stat about {};
    ASSERT_EQ(::stat(target().c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 07777, special & 0777u);
  }
}

TEST_F(UnfinishedFile, IsRefusedBeforeTheWorkIfItsNameIsTooLong) {
  for (const std::string& name :
       {std::string(256, 'x') + ".npy", std::string(5000, 'x'), "a/" + std::string(300, 'y')}) {
    try {
      const unfinished_file file(directory_ + "/" + name, existing_file::replace);
      ADD_FAILURE() << name;
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), name[1] == '/' ? errc::not_found : errc::invalid_argument)
          << failure.what();
    }
  }
  // The longest possible name.
  const std::string longest = directory_ + "/" + std::string(255, 'z');
  unfinished_file file(longest, existing_file::refuse);
  write(file.path(), "new");
  file.publish();
  EXPECT_EQ(read(longest), "new");
}

TEST_F(UnfinishedFile, IsRefusedBeforeTheWorkIfItsTargetIsAMountPoint) {
  write(target(), "old");
  if (::mount(target().c_str(), target().c_str(), nullptr, MS_BIND, nullptr) != 0)
    GTEST_SKIP() << "only root may mount";
  const test::outcome went =
      test::outcome_of([&] { unfinished_file(target(), existing_file::replace); });
  ASSERT_EQ(::umount2(target().c_str(), MNT_DETACH), 0);
  EXPECT_EQ(went.code, errc::invalid_argument);
  EXPECT_NE(went.text.find("mount point"), std::string::npos) << went.text;
}

TEST_F(UnfinishedFile, IsRefusedBeforeTheWorkIfAStickyFolderKeepsItsTarget) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  write(target(), "old");
  ASSERT_EQ(::chmod(target().c_str(), 0666), 0);
  ASSERT_EQ(::chmod(directory_.c_str(), 01777), 0);
  test::outcome replacing;
  test::outcome making;
  {
    const test::ordinary_user rights;
    struct stat about {};
    if (::stat(target().c_str(), &about) != 0)
      GTEST_SKIP() << "another user cannot reach the folder";
    replacing = test::outcome_of([&] { unfinished_file(target(), existing_file::replace); });
    making =
        test::outcome_of([&] { unfinished_file(directory_ + "/new.png", existing_file::replace); });
  }
  EXPECT_EQ(replacing.code, errc::access_denied);
  EXPECT_NE(replacing.text.find("sticky"), std::string::npos) << replacing.text;
  EXPECT_EQ(making.code, std::nullopt) << making.text;
}

TEST_F(UnfinishedFile, AppearsWhenItIsPublished) {
  unfinished_file file(target(), existing_file::refuse);
  write(file.path(), "new");
  EXPECT_FALSE(std::filesystem::exists(target()));
  file.publish();
  EXPECT_EQ(read(target()), "new");
  EXPECT_EQ(files(), 1);
}

TEST_F(UnfinishedFile, IsPublishedWhereItWasBegun) {
  const auto before = std::filesystem::current_path();
  for (const existing_file how : {existing_file::refuse, existing_file::replace}) {
    std::filesystem::current_path(directory_);
    unfinished_file file("x.png", how);
    unfinished_file dropped("y.png", how);
    EXPECT_EQ(file.target(), "x.png");
    std::filesystem::current_path("/");
    write(file.path(), "new");
    write(dropped.path(), "new");
    file.publish();
    std::filesystem::current_path(before);
    EXPECT_EQ(read(target()), "new");
  }
  EXPECT_EQ(files(), 1);
}

TEST_F(UnfinishedFile, FollowsItsFolder) {
  for (const bool published : {true, false}) {
    std::filesystem::create_directory(directory_ + "/before");
    {
      npy_writer array(directory_ + "/before/a.npy", dtype::int8, {3});
      unfinished_file file(directory_ + "/before/x.png", existing_file::replace);
      file.create([&] { write(file.path(), "new"); });
      std::filesystem::rename(directory_ + "/before", directory_ + "/after");
      if (published) {
        file.publish();
        array.finish();
      }
    }
    EXPECT_EQ(std::filesystem::exists(directory_ + "/after/x.png"), published);
    EXPECT_EQ(std::filesystem::exists(directory_ + "/after/a.npy"), published);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_ + "/after"), {}),
              published ? 2 : 0);
    std::filesystem::remove_all(directory_ + "/after");
  }
}

TEST_F(UnfinishedFile, IsNotAnotherOfItsName) {
  unfinished_file file(target(), existing_file::replace);
  file.create([&] { write(file.path(), "ours"); });
  std::filesystem::remove(file.path());
  write(file.path(), "another's");
  EXPECT_EQ(test::code_of([&] { file.publish(); }), errc::io);
  EXPECT_EQ(test::code_of([&] { file.publish_durable(); }), errc::io);
  EXPECT_FALSE(std::filesystem::exists(target()));

  npy_writer array(target(), dtype::int8, {3});
  for (const auto& entry : std::filesystem::directory_iterator(directory_))
    if (entry.path() != file.path()) {
      std::filesystem::remove(entry);
      write(entry.path(), "another's");
    }
  EXPECT_EQ(test::code_of([&] { array.finish(); }), errc::io);
  EXPECT_FALSE(std::filesystem::exists(target()));

  unfinished_file folder(target(), existing_file::replace);
  folder.create([&] { std::filesystem::create_directory(folder.path()); });
  EXPECT_EQ(test::code_of([&] { folder.publish_durable(); }), errc::invalid_argument);
}

TEST_F(UnfinishedFile, LeavesNothingBehindOtherwise) {
  write(target(), "old");
  {
    const unfinished_file file(target(), existing_file::replace);
    write(file.path(), "new");
  }
  EXPECT_EQ(read(target()), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(UnfinishedFile, ReplacesOnlyWhenAllowed) {
  write(target(), "old");
  EXPECT_THROW(unfinished_file(target(), existing_file::refuse), error);
  unfinished_file file(target(), existing_file::replace);
  write(file.path(), "new");
  file.publish();
  EXPECT_EQ(read(target()), "new");
}

TEST_F(UnfinishedFile, TakesThePermissionsOfWhatItReplaces) {
  write(target(), "old");
  std::filesystem::permissions(target(), std::filesystem::perms(0640));
  unfinished_file file(target(), existing_file::replace);
  write(file.path(), "new");
  file.publish();
  EXPECT_EQ(std::filesystem::status(target()).permissions(), std::filesystem::perms(0640));
}

// Whoever opens a file reads on after its permissions are changed.
TEST_F(UnfinishedFile, IsMadeForItsOwnerAloneIfItReplacesAFile) {
  const auto permissions = [](const std::string& path) {
    return static_cast<unsigned>(std::filesystem::status(path).permissions());
  };
  const auto partial = [&] {
    std::string found;
    for (const auto& entry : std::filesystem::directory_iterator(directory_))
      if (entry.path().extension() == ".partial") found = entry.path();
    return found;
  };
  const mode_t umask_before = ::umask(022);
  for (const unsigned old_mode : {0600u, 0640u, 0666u}) {
    EXPECT_EQ(unfinished_file(directory_ + "/new", existing_file::replace).mode(), 0666u);
    write(target(), "old");
    std::filesystem::permissions(target(), std::filesystem::perms(old_mode));
    EXPECT_EQ(unfinished_file(target(), existing_file::replace).mode(), 0600u);
    npy_writer array(target(), dtype::int8, {3});
    EXPECT_EQ(permissions(partial()), 0600u);
    array.finish();
    EXPECT_EQ(permissions(target()), old_mode);
    npz_writer archive(target());
    EXPECT_EQ(permissions(partial()), 0600u);
    archive.add("a", tensor::of<std::uint8_t>({1}));
    archive.finish();
    EXPECT_EQ(permissions(target()), old_mode);
    std::filesystem::remove(target());
  }
  npy_writer array(target(), dtype::int8, {3});
  EXPECT_EQ(permissions(partial()), 0644u);
  ::umask(umask_before);
}

TEST_F(UnfinishedFile, KeepsThePermissionsOfAFileThatIsRemovedMeanwhile) {
  write(target(), "old");
  std::filesystem::permissions(target(), std::filesystem::perms(0640));
  unfinished_file file(target(), existing_file::replace);
  write(file.path(), "new");
  std::filesystem::remove(target());
  file.publish();
  EXPECT_EQ(std::filesystem::status(target()).permissions(), std::filesystem::perms(0640));
}

// A user who may write to the folder can give the old file's name to another file.
TEST_F(UnfinishedFile, IsOpenToNobodyWhoCouldNotOpenTheOldFile) {
  struct modes {
    unsigned old, other, wanted;
  };
  for (const modes& each :
       {modes{0600, 0666, 0600}, modes{0640, 0604, 0600}, modes{0644, 0600, 0600}}) {
    write(target(), "old");
    std::filesystem::permissions(target(), std::filesystem::perms(each.old));
    unfinished_file file(target(), existing_file::replace);
    file.create([&] { write(file.path(), "new"); });
    std::filesystem::rename(target(), directory_ + "/taken");
    write(target(), "another's");
    std::filesystem::permissions(target(), std::filesystem::perms(each.other));
    file.publish();
    EXPECT_EQ(read(target()), "new");
    EXPECT_EQ(std::filesystem::status(target()).permissions(), std::filesystem::perms(each.wanted));
  }
}

// The group bits of a file with an access list are the most that the list allows. The group itself
// may do nothing here.
class UnfinishedFileWithAccessList : public UnfinishedFile {
 protected:
  void SetUp() override {
    write(target(), "old");
    const int failure = test::set_access_list(target(), list_);
    if (failure == EOPNOTSUPP) GTEST_SKIP() << "this file system has no access lists";
    ASSERT_EQ(failure, 0);
  }
  void expect_target(const std::string& list, unsigned permissions) const {
    EXPECT_EQ(read(target()), "new");
    EXPECT_EQ(test::read_access_list(target()), list);
    EXPECT_EQ(std::filesystem::status(target()).permissions(), std::filesystem::perms(permissions));
  }

  const std::string list_ = test::access_list_bytes({.others = 4});
};

TEST_F(UnfinishedFileWithAccessList, TakesTheListOfWhatItReplaces) {
  unfinished_file file(target(), existing_file::replace);
  file.create([&] { write(file.path(), "new"); });
  file.publish();
  expect_target(list_, 0664);
}

TEST_F(UnfinishedFileWithAccessList, TakesTheListOfAFileThatIsRemovedMeanwhile) {
  unfinished_file file(target(), existing_file::replace);
  file.create([&] { write(file.path(), "new"); });
  std::filesystem::remove(target());
  file.publish();
  expect_target(list_, 0664);
}

TEST_F(UnfinishedFileWithAccessList, TakesTheListIfAnotherWriterHasReplacedTheFile) {
  unfinished_file first(target(), existing_file::replace);
  unfinished_file second(target(), existing_file::replace);
  for (unfinished_file* file : {&first, &second}) {
    file->create([&] { write(file->path(), "new"); });
    file->publish();
    expect_target(list_, 0664);
  }
}

// Nothing is known of the rights that both files give.
TEST_F(UnfinishedFileWithAccessList, IsItsOwnersAloneIfAFileWithAnotherListTakesTheName) {
  const std::string other = test::access_list_bytes({.group = 6, .others = 4});
  for (const std::string& list : {other, std::string()}) {
    SCOPED_TRACE(list.size());
    write(target(), "old");
    ASSERT_EQ(test::set_access_list(target(), list_), 0);
    unfinished_file file(target(), existing_file::replace);
    file.create([&] { write(file.path(), "new"); });
    std::filesystem::rename(target(), directory_ + "/taken");
    write(target(), "another's");
    std::filesystem::permissions(target(), std::filesystem::perms(0664));
    if (!list.empty()) {
      ASSERT_EQ(test::set_access_list(target(), list), 0);
    }
    file.publish();
    expect_target("", 0600);
    std::filesystem::remove(target());
  }
}

TEST_F(UnfinishedFileWithAccessList, HasNoListOfItsFolderIfTheOldFileHasNone) {
  std::filesystem::remove(target());
  write(target(), "old");
  std::filesystem::permissions(target(), std::filesystem::perms(0640));
  ASSERT_EQ(test::set_access_list(directory_, list_, test::list_for_new_files), 0);
  unfinished_file file(target(), existing_file::replace);
  file.create([&] { write(file.path(), "new"); });
  ASSERT_NE(test::read_access_list(file.path()), "");
  file.publish();
  expect_target("", 0640);
}

TEST_F(UnfinishedFile, TakesPermissionsThatTheOldFileGetsMeanwhile) {
  for (const unsigned changed : {0400u, 0644u}) {
    write(target(), "old");
    std::filesystem::permissions(target(), std::filesystem::perms(0600));
    unfinished_file file(target(), existing_file::replace);
    file.create([&] { write(file.path(), "new"); });
    std::filesystem::permissions(target(), std::filesystem::perms(changed));
    file.publish();
    EXPECT_EQ(std::filesystem::status(target()).permissions(), std::filesystem::perms(changed));
    std::filesystem::remove(target());
  }
}

TEST_F(UnfinishedFile, IsGivenToNoUserWhoPutsAFileInThePlaceOfTheOldOne) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  constexpr uid_t other = 65534;
  const auto about = [](const std::string& path) {
    struct stat result {};
    EXPECT_EQ(::stat(path.c_str(), &result), 0) << path;
    return result;
  };
  write(target(), "old");
  ASSERT_EQ(::chmod(target().c_str(), 0600), 0);
  const gid_t group = about(target()).st_gid;
  unfinished_file file(target(), existing_file::replace);
  file.create([&] { write(file.path(), "new"); });
  std::filesystem::rename(target(), directory_ + "/taken");
  write(target(), "another's");
  ASSERT_EQ(::chown(target().c_str(), other, other), 0);
  ASSERT_EQ(::chmod(target().c_str(), 0666), 0);
  const auto owners = file.take_over_owner();
  ASSERT_TRUE(owners);
  EXPECT_EQ(owners->replaced.user, other);
  EXPECT_EQ(owners->made.user, 0u);
  file.publish();
  EXPECT_EQ(about(target()).st_uid, 0u);
  EXPECT_EQ(about(target()).st_gid, group);
  EXPECT_EQ(about(target()).st_mode & 07777, 0600u);
}

// Two writers that replace one file of another user: the second finds the file of the first.
TEST_F(UnfinishedFile, KeepsTheOwnerIfAnotherWriterHasReplacedTheFile) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  constexpr uid_t other = 65534;
  write(target(), "old");
  ASSERT_EQ(::chown(target().c_str(), other, other), 0);
  ASSERT_EQ(::chmod(target().c_str(), 0640), 0);
  unfinished_file first(target(), existing_file::replace);
  unfinished_file second(target(), existing_file::replace);
  for (unfinished_file* file : {&first, &second}) {
    file->create([&] { write(file->path(), "new"); });
    file->publish();
    struct stat about {};
    ASSERT_EQ(::stat(target().c_str(), &about), 0);
    EXPECT_EQ(about.st_uid, other);
    EXPECT_EQ(about.st_gid, other);
    EXPECT_EQ(about.st_mode & 07777, 0640u);
  }
}

TEST_F(UnfinishedFile, GetsItsOwnerAlsoIfItGetsItsNameByOtherMeans) {
  unfinished_file fresh(directory_ + "/new", existing_file::replace);
  fresh.create([&] { write(fresh.path(), "new"); });
  EXPECT_FALSE(fresh.take_over_owner());
  write(target(), "old");
  std::filesystem::permissions(target(), std::filesystem::perms(0640));
  unfinished_file file(target(), existing_file::replace);
  EXPECT_EQ(test::code_of([&] { file.take_over_owner(); }), errc::not_found);
  file.create([&] { write(file.path(), "new"); });
  const auto owners = file.take_over_owner();
  ASSERT_TRUE(owners);
  EXPECT_EQ(owners->replaced.user, ::geteuid());
  EXPECT_EQ(owners->made.user, ::geteuid());
  EXPECT_EQ(owners->made.group, owners->replaced.group);
  EXPECT_EQ(std::filesystem::status(file.path()).permissions(), std::filesystem::perms(0640));
}

// The temporary file is gone when the message is read.
TEST_F(UnfinishedFile, ErrorsNameTheTarget) {
  unfinished_file file(target(), existing_file::replace);
  for (const bool making : {true, false}) {
    const std::string said = test::text_of([&] {
      const auto fail = [&] { throw error(errc::io, "no room", {"file " + file.path()}); };
      if (making) file.create(fail);
      else file.naming_target(fail);
    });
    EXPECT_EQ(said, "no room [io]\n  file " + target());
  }
}

TEST_F(UnfinishedFile, RefusesATargetThatAppearedMeanwhile) {
  unfinished_file file(target(), existing_file::refuse);
  write(file.path(), "new");
  write(target(), "somebody else's");
  try {
    file.publish();
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::already_exists);
  }
  EXPECT_EQ(read(target()), "somebody else's");
}

TEST_F(UnfinishedFile, SaysAtOnceThatADirectoryIsMissing) {
  try {
    unfinished_file(directory_ + "/none/x.png", existing_file::refuse);
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::not_found);
  }
}

TEST_F(UnfinishedFile, CannotKeepTheBytesOfAnExistingFile) {
  for (const bool exists : {false, true}) {
    if (exists) write(target(), "old");
    try {
      unfinished_file(target(), existing_file::keep);
      FAIL();
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::invalid_argument);
    }
    EXPECT_EQ(files(), exists ? 1 : 0);
  }
}

TEST_F(UnfinishedFile, ReplacesNothingButRegularFiles) {
  ASSERT_EQ(::mkfifo(target().c_str(), 0600), 0);
  for (const std::string& wrong : {target(), directory_, std::string("/dev/null")}) {
    try {
      unfinished_file(wrong, existing_file::replace);
      FAIL() << wrong;
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::invalid_argument);
    }
  }
  EXPECT_TRUE(std::filesystem::is_fifo(target()));
}

TEST_F(UnfinishedFile, FollowsALinkThatStays) {
  std::filesystem::create_directory(directory_ + "/below");
  write(directory_ + "/below/real.png", "old");
  std::filesystem::create_symlink("below/real.png", target());
  unfinished_file file(target(), existing_file::replace);
  write(file.path(), "new");
  file.publish();
  EXPECT_TRUE(std::filesystem::is_symlink(target()));
  EXPECT_EQ(read(directory_ + "/below/real.png"), "new");
}

TEST_F(UnfinishedFile, FollowsLinksToMissingFiles) {
  std::filesystem::create_directory(directory_ + "/below");
  std::filesystem::create_symlink("below/other.png", target());
  std::filesystem::create_symlink("real.png", directory_ + "/below/other.png");
  unfinished_file file(target(), existing_file::refuse);
  write(file.path(), "new");
  file.publish();
  EXPECT_TRUE(std::filesystem::is_symlink(target()));
  EXPECT_EQ(read(directory_ + "/below/real.png"), "new");
  EXPECT_THROW(unfinished_file(target(), existing_file::refuse), error);
  std::filesystem::create_symlink("loop", directory_ + "/loop");
  EXPECT_THROW(unfinished_file(directory_ + "/loop", existing_file::replace), error);
  EXPECT_TRUE(std::filesystem::is_symlink(directory_ + "/loop"));
}

TEST_F(UnfinishedFile, MayBeMadeByAnotherWriter) {
  unfinished_file file(target(), existing_file::refuse);
  file.create([&] { write_raw(file.path(), tensor::of<std::uint8_t>({65, 66})); });
  file.publish();
  EXPECT_EQ(read(target()), "AB");
  EXPECT_EQ(files(), 1);
}

// Links in /proc are not names. No file whose name is the link's text may be made (its text names a
// file in the root folder).
TEST_F(UnfinishedFile, RefusesToReplaceWhatHasNoName) {
  for (const auto kind :
       {test::nameless::memory, test::nameless::removed, test::nameless::unnamed}) {
    const test::nameless_file file(kind, directory_);
    if (!file.is_open()) continue;
    std::filesystem::remove(target());
    std::filesystem::create_symlink(file.path(), target());
    for (const test::foreign& format : test::foreign_formats())
      for (const std::string& path : {file.path(), target()}) {
        const std::string said = test::text_of([&] {
          format.write(path, tensor::of<std::uint8_t>({1, 2}));
        });
        EXPECT_NE(said.find("[invalid_argument]"), std::string::npos) << format.name << said;
        EXPECT_NE(said.find(path), std::string::npos) << format.name << said;
      }
    for (const existing_file how : {existing_file::refuse, existing_file::replace})
      EXPECT_THROW(unfinished_file(target(), how), error);
    EXPECT_EQ(file.size(), 0u);
    EXPECT_FALSE(std::filesystem::remove(file.text())) << "made a file of that name";
    EXPECT_EQ(files(), 1);
  }
  // A pipe is not a regular file, whatever the link's text says.
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const std::string said = test::text_of(
      [&] { unfinished_file("/dev/fd/" + std::to_string(pipe[1]), existing_file::replace); });
  EXPECT_NE(said.find("only regular files"), std::string::npos) << said;
  ::close(pipe[0]);
  ::close(pipe[1]);
}

// (Docker) containers that share a volume often have equal process numbers.
TEST_F(UnfinishedFile, HasANameOfItsOwnEachTime) {
  const unfinished_file first(target(), existing_file::refuse);
  const unfinished_file second(target(), existing_file::refuse);
  EXPECT_NE(first.path(), second.path());
}

TEST_F(UnfinishedFile, TakesTheLongestName) {
  const std::string longest = directory_ + "/" + std::string(251, 'n') + ".png";
  unfinished_file file(longest, existing_file::refuse);
  write(file.path(), "new");
  file.publish();
  EXPECT_EQ(read(longest), "new");
}

TEST_F(UnfinishedFile, RemovesAllBeforeASuddenEnd) {
  GTEST_FLAG_SET(death_test_style, "fast");
  const auto make_and_end = [&] {
    const unfinished_file file(target(), existing_file::refuse);
    write(file.path(), "new");
    exit_without_unfinished_files(7);
  };
  EXPECT_EXIT(make_and_end(), testing::ExitedWithCode(7), "");
  EXPECT_EQ(files(), 0);
}

// A mask or a handler of the process cannot keep it from dying.
TEST_F(UnfinishedFile, RemovesAllBeforeADeathBySignal) {
  GTEST_FLAG_SET(death_test_style, "fast");
  const auto make_and_die = [&] {
    const unfinished_file file(target(), existing_file::refuse);
    write(file.path(), "new");
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    ::signal(SIGTERM, SIG_IGN);
    raise_without_unfinished_files(SIGTERM);
  };
  EXPECT_EXIT(make_and_die(), testing::KilledBySignal(SIGTERM), "");
  EXPECT_EQ(files(), 0);
}

// The default action of SIGCHLD is none.
TEST_F(UnfinishedFile, EndsAProcessThatASignalDoesNotEnd) {
  GTEST_FLAG_SET(death_test_style, "fast");
  EXPECT_EXIT(raise_without_unfinished_files(SIGCHLD), testing::ExitedWithCode(128 + SIGCHLD), "");
}

// The code that makes a file may wait for a thread that makes another file, even if the end of the
// process was requested in between; and that code may itself request the end.
TEST_F(UnfinishedFile, SuddenEndsDoNotWaitForEver) {
  const auto end_from_outside = [&] {
    ::alarm(15);
    const unfinished_file file(target(), existing_file::refuse);
    file.create([&] {
      write(file.path(), "new");
      std::thread([] { exit_without_unfinished_files(7); }).detach();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      std::jthread([&] {
        const unfinished_file other(directory_ + "/other", existing_file::refuse);
        other.create([&] { write(other.path(), "other"); });
      }).join();
    });
    for (;;) ::pause();
  };
  EXPECT_EXIT(end_from_outside(), testing::ExitedWithCode(7), "");
  EXPECT_EQ(files(), 0);
  const auto end_from_inside = [&] {
    ::alarm(15);
    const unfinished_file file(target(), existing_file::refuse);
    file.create([&] {
      write(file.path(), "new");
      exit_without_unfinished_files(7);
    });
  };
  EXPECT_EXIT(end_from_inside(), testing::ExitedWithCode(7), "");
  EXPECT_EQ(files(), 0);
}

// A file that is made while others are being removed must not stay.
TEST_F(UnfinishedFile, IsNotMadeWhileTheProcessEndsSuddenly) {
  for (int round = 0; round < 50; ++round) {
    const auto make_until_the_end = [&] {
      std::vector<std::jthread> makers;
      std::atomic<int> made = 0;
      for (int k = 0; k < 4; ++k)
        makers.emplace_back([&] {
          for (;; ++made) {
            const unfinished_file file(target(), existing_file::refuse);
            file.create([&] { write(file.path(), "new"); });
          }
        });
      while (made < 100) std::this_thread::yield();
      exit_without_unfinished_files(7);
    };
    EXPECT_EXIT(make_until_the_end(), testing::ExitedWithCode(7), "");
    ASSERT_EQ(files(), 0);
  }
}

// Runs `body` in a child that is forked; it ends by itself, with 0.
void expect_of_child(const std::function<void()>& body) {
  auto turn = test::turn_to_allocate();
  const pid_t child = ::fork();
  turn = {};
  ASSERT_GE(child, 0);
  if (child == 0) {
    const test::hang_alarm limit;
    body();
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(UnfinishedFile, IsPublishedOrRemovedByItsOwnProcessAlone) {
  for (const bool published : {true, false}) {
    {
      std::optional<unfinished_file> file(std::in_place, target(), existing_file::replace);
      file->create([&] { write(file->path(), "new"); });
      std::optional<npy_writer> array(std::in_place, directory_ + "/a.npy", dtype::int8, dims{3});
      expect_of_child([&] {
        EXPECT_EQ(test::code_of([&] { file->publish(); }), errc::invalid_argument);
        EXPECT_EQ(test::code_of([&] { file->publish_durable(); }), errc::invalid_argument);
        EXPECT_EQ(test::code_of([&] { file->create([] { ADD_FAILURE(); }); }),
                  errc::invalid_argument);
        EXPECT_NE(test::code_of([&] { array->finish(); }), errc{});
      });
      expect_of_child([&] {
        unfinished_file moved(std::move(*file));
        file.reset();
        array.reset();
      });
      expect_of_child([&] {
        const unfinished_file own(directory_ + "/own.png", existing_file::replace);
        own.create([&] { write(own.path(), "its own"); });
        exit_without_unfinished_files(0);
      });
      EXPECT_EQ(files(), 2);
      if (published) {
        file->publish();
        array->finish();
      }
    }
    EXPECT_EQ(std::filesystem::exists(target()), published);
    EXPECT_EQ(std::filesystem::exists(directory_ + "/a.npy"), published);
    EXPECT_EQ(files(), published ? 2 : 0);
    std::filesystem::remove(target());
    std::filesystem::remove(directory_ + "/a.npy");
  }
}

// vfork, and clone without its flags, run no handlers.
TEST_F(UnfinishedFile, IsNotPublishedByAChildForkedWithoutHandlers) {
  const unfinished_file file(target(), existing_file::replace);
  file.create([&] { write(file.path(), "new"); });
  const auto child =
      static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, 0));
  ASSERT_GE(child, 0);
  if (child == 0) exit_without_unfinished_files(0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(files(), 1);
}

// At the fork, another thread held the lock of the list, and the list counted threads of the
// parent.
TEST_F(UnfinishedFile, IsMadeInAChildWhileOtherThreadsMakeSome) {
  const tensor values = tensor::of<std::int8_t>({1, 2, 3});
  std::atomic<bool> enough = false;
  std::vector<std::jthread> makers;
  for (int k = 0; k < 3; ++k)
    makers.push_back(test::running_thread([&, k] {
      while (!enough) {
        const auto turn = test::turn_to_allocate();
        write_npy(directory_ + "/" + std::to_string(k) + ".npy", values);
      }
    }));
  for (int round = 0; round < test::repeats(200) && !HasFailure(); ++round)
    expect_of_child([&] {
      write_npy(directory_ + "/child.npy", values);
      if (round % 2 == 0) exit_without_unfinished_files(0);
    });
  enough = true;
  makers.clear();
  EXPECT_EQ(files(), 4);
}

TEST_F(UnfinishedFile, IsMadeInAChildOfItsMaker) {
  const unfinished_file file(target(), existing_file::replace);
  file.create([&] {
    write(file.path(), "new");
    expect_of_child([&] {
      write_raw(directory_ + "/child.raw", tensor::of<std::uint8_t>({65}));
      exit_without_unfinished_files(0);
    });
  });
  EXPECT_EQ(files(), 2);
}

const char* last_folder = nullptr;

bool write_files() {
  const std::string folder = last_folder;
  write_npy(folder + "/late.npy", tensor::of<std::int8_t>({1, 2, 3}));
  npy_writer dropped(folder + "/dropped.npy", dtype::int8, {3});
  npy_writer moved(std::move(dropped));
  // NOLINTNEXTLINE(bugprone-use-after-move): what a handle without a file shows
  return dropped.elements().size() == 0 && moved.elements().size() == 3 &&
         read_npy(folder + "/late.npy").size() == 3;
}

using LastFiles = testing::TestWithParam<test::last_moment>;

TEST_P(LastFiles, AreWritten) {
  const test::scratch_directory folder;
  last_folder = folder.path().c_str();
  test::expect_last_call(
      GetParam(), [] { write_files(); }, write_files);
}

INSTANTIATE_TEST_SUITE_P(AtEveryMoment, LastFiles, testing::ValuesIn(test::last_moments));

// A static object that was made after the library was first used, and uses it in its destructor.
TEST_F(UnfinishedFile, MayBelongToAStaticObject) {
  test::expect_to_end([&] {
    static std::optional<npy_writer> writer;
    writer.emplace(directory_ + "/a.npy", dtype::int8, dims{3});
    std::exit(0);
  });
  EXPECT_EQ(files(), 0);
}

}  // namespace
}  // namespace shale
