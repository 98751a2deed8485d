#include "storage/files/awaited_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "shale/mapped_file.hpp"
#include "storage/test_support.hpp"
#include "support/allocation_turns.hpp"
#include "support/bounded.hpp"
#include "support/failures.hpp"

namespace shale {
namespace {

using detail::awaited_file;
using test::code_of;

class AwaitedFile : public testing::Test {
 protected:
  // Acts as another user of the file that receives an error from the system.
  static void report_error(const std::string& path) {
    const detail::file_descriptor file = detail::open_descriptor(path, O_RDONLY);
    detail::write_back_record::of(file.get())->report({.error_number = EIO});
  }

  test::scratch_directory directory_;
  const std::string path_ = directory_ / "new";
};

TEST_F(AwaitedFile, IsMadeDurableWhereAllIsWell) {
  awaited_file file(path_);
  EXPECT_EQ(code_of([&] { file.sync("shown"); }), errc::not_found);
  const storage bytes = create_file(path_, 100);
  file.sync("shown");
  file.check("shown");
}

// awaited.1
TEST_F(AwaitedFile, HearsOfErrorsFromTheMomentItIsMade) {
  awaited_file file(path_);
  awaited_file other(directory_ / "other");
  static_cast<void>(create_file(path_, 100));
  static_cast<void>(create_file(directory_ / "other", 100));
  report_error(path_);
  EXPECT_EQ(code_of([&] { file.check("shown"); }), errc::io);
  EXPECT_NE(test::text_of([&] { file.sync("shown"); }).find("file shown"), std::string::npos);
  other.sync("other");
}

TEST_F(AwaitedFile, HearsOfThemAlsoWhereItReplacesAFileOrIsKept) {
  for (const existing_file existing : {existing_file::replace, existing_file::keep}) {
    static_cast<void>(create_file(path_, 100, {.existing = existing_file::replace}));
    awaited_file file(path_);
    static_cast<void>(create_file(path_, 200, {.existing = existing}));
    report_error(path_);
    EXPECT_EQ(code_of([&] { file.sync("shown"); }), errc::io) << static_cast<int>(existing);
  }
}

// awaited.2
TEST_F(AwaitedFile, ForgetsErrorsOnlyWithTheFile) {
  awaited_file file(path_);
  static_cast<void>(create_file(path_, 100));
  report_error(path_);
  file.look();
  for (int again = 0; again < 2; ++again)
    EXPECT_EQ(code_of([&] { file.sync("shown"); }), errc::io) << again;
  // The old file exists until the new one has been seen, so that no inode number is used twice.
  std::filesystem::rename(path_, path_ + ".old");
  static_cast<void>(create_file(path_, 100));
  file.sync("shown");
}

// awaited.3
TEST_F(AwaitedFile, IsTheAnnouncedOneWhateverTakesItsName) {
  awaited_file file(path_);
  static_cast<void>(create_file(path_, 100));
  const auto known = detail::file_identity::of(file.descriptor());
  ASSERT_TRUE(known);
  const detail::file_descriptor folder =
      detail::open_descriptor(directory_.path(), O_RDONLY | O_DIRECTORY);
  file.require_name(folder.get(), "new", "shown");
  std::filesystem::rename(path_, path_ + ".old");
  test::write_file(path_, "another's");
  file.look();
  EXPECT_EQ(detail::file_identity::of(file.descriptor()), known);
  EXPECT_EQ(code_of([&] { file.require_name(folder.get(), "new", "shown"); }), errc::io);
}

// A link would make the process change the owner and the permissions of the file that it leads to.
TEST_F(AwaitedFile, IsNoLink) {
  awaited_file file(path_);
  test::write_file(path_ + ".other", "another's");
  std::filesystem::create_symlink(path_ + ".other", path_);
  file.look();
  EXPECT_EQ(file.descriptor(), -1);
}

// A description that is opened later could not replace it.
TEST_F(AwaitedFile, IsNotCalledDurableIfItCouldNotBeWatched) {
  awaited_file file(path_);
  std::filesystem::create_symlink(path_, path_);  // a path that cannot be opened
  file.look();
  EXPECT_EQ(code_of([&] { file.sync("shown"); }), errc::io);
}

// The process had no descriptor left at that time.
TEST_F(AwaitedFile, IsNotCalledDurableIfItCouldNotBeWatchedWhenItWasMade) {
  awaited_file file(path_);
  test::write_file(path_, "bytes");
  const auto made = detail::file_identity::of(detail::open_descriptor(path_, O_RDONLY).get());
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{3, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &none);
  awaited_file::appeared(path_, made);
  ::setrlimit(RLIMIT_NOFILE, &before);
  file.look();
  EXPECT_EQ(code_of([&] { file.sync("shown"); }), errc::io);
  static_cast<void>(create_file(path_, 100, {.existing = existing_file::replace}));
  file.sync("shown");
}

TEST_F(AwaitedFile, HoldsOneDescriptor) {
  static_cast<void>(create_file(path_ + ".first", 100));  // opens what a process opens once
  const std::size_t before = test::open_descriptors();
  {
    awaited_file file(path_);
    static_cast<void>(create_file(path_, 100));
    file.look();
    EXPECT_EQ(test::open_descriptors(), before + 1);
  }
  EXPECT_EQ(test::open_descriptors(), before);
}

// A fork waits for both locks that `look` takes, in the order in which `look` takes them.
TEST_F(AwaitedFile, IsLookedAtWhileTheProcessForks) {
  test::expect_to_end([&] {
    const awaited_file first(path_ + ".first");  // before any file has a record
    std::atomic<bool> forked = false;
    std::jthread looking = test::running_thread([&] {
      while (!forked) {
        const auto turn = test::turn_to_allocate();
        awaited_file file(path_);
        static_cast<void>(create_file(path_, 100, {.existing = existing_file::replace}));
        file.look();
      }
    });
    for (int round = 0; round < 300; ++round) {
      auto turn = test::turn_to_allocate();
      const pid_t child = ::fork();
      turn = {};
      if (child == 0) {
        awaited_file file(path_);
        file.look();
        std::_Exit(0);
      }
      int status = -1;
      EXPECT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
    }
    forked = true;
    looking.join();
  });
}

}  // namespace
}  // namespace shale
