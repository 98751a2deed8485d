// Makes every call to the operating system and every allocation fail in turn while foreign files
// are written and read. There is a clear error or none, nothing leaks, and the name leads to the
// old file or to the complete new one.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "interop/foreign_formats.hpp"
#include "interop/test_support.hpp"
#include "shale/mapped_file.hpp"
#include "shale/unfinished_file.hpp"
#include "storage/pool/pools/housekeeper.hpp"
#include "support/access_lists.hpp"
#include "support/failing_calls.hpp"
#include "support/process_footprint.hpp"

namespace shale {
namespace {

using test::failing;
using test::foreign;
using test::open_descriptors;
using test::outcome;
using test::outcome_of;

class FailingForeignFile : public testing::TestWithParam<foreign> {
 protected:
  FailingForeignFile() {
    // The test counts descriptors, so the housekeeper must not open files in /proc meanwhile.
    detail::exchange_memory_probe([] { return detail::system_memory(); });
    // Create everything that a process creates only once before anything fails.
    GetParam().write(path_, older_);
    old_bytes_ = test::read_file(path_);
    GetParam().write(path_, newer_);
    new_bytes_ = test::read_file(path_);
    GetParam().read(path_);
  }
  ~FailingForeignFile() override { test::run_before_calls(nullptr); }

  void prepare(bool replaces) const {
    std::filesystem::remove(path_);
    if (!replaces) return;
    test::write_file(path_, old_bytes_);
    std::filesystem::permissions(path_, old_permissions);
  }

  // Makes one call after the other fail while a new file is written, and while a file is replaced.
  // `allowed` decides whether an outcome is right.
  template <class Allowed>
  void fail_each(failing how, int number, Allowed allowed) {
    for (const bool replaces : {false, true}) {
      for (std::uint64_t call = 0;; ++call) {
        SCOPED_TRACE((replaces ? "replacing, call " : "new, call ") + std::to_string(call));
        prepare(replaces);
        const std::size_t descriptors = open_descriptors();
        test::fail_calls(how, call, number);
        const outcome went = outcome_of([&] { GetParam().write(path_, newer_); });
        test::stop_failing();
        const std::string failed = test::failed_call();
        failures_ += went.code.has_value();
        ASSERT_TRUE(allowed(went, failed)) << failed << ": " << went.text;
        for (const char* const decisive : {"fsync", "msync", "fstatat"})
          if (how != failing::partially && failed == decisive) {
            ASSERT_TRUE(went.code) << "a failed " << decisive << " was passed over";
          }
        const auto names = files_.names();
        if (!names.empty() || replaces || !went.code) {
          ASSERT_EQ(names, std::vector<std::string>{"a.file"}) << failed << ": " << went.text;
          const std::string bytes = test::read_file(path_);
          ASSERT_TRUE(bytes == new_bytes_ || (went.code && replaces && bytes == old_bytes_))
              << failed << ": " << went.text;
          if (replaces) {
            const auto now = std::filesystem::status(path_).permissions();
            ASSERT_TRUE(now == old_permissions ||
                        (!went.code && finds_access_list(failed) && now == owner_permissions))
                << failed;
          }
        }
        ASSERT_EQ(open_descriptors(), descriptors) << failed;
        ASSERT_EQ(test::mappings_of(path_), 0u) << failed;
        if (failed.empty()) break;  // there are no more calls
      }
    }
  }

  bool names_file(const outcome& went) const {
    return went.text.find(files_.path()) != std::string::npos;
  }

  // Whether such a call finds out if the old file has an access list. If that stays unknown, only
  // the owner gets permissions.
  static bool finds_access_list(const std::string& call) {
    return call == "openat" || call == "fstat" || call.find("xattr") != std::string::npos;
  }

  // No file gets these if it is made as a new one.
  static constexpr auto old_permissions = std::filesystem::perms(0750);
  static constexpr auto owner_permissions = std::filesystem::perms(0700);

  test::scratch_directory files_;
  const std::string path_ = files_ / "a.file";
  const tensor older_ = test::pattern({700}, dtype::int16, 1);
  const tensor newer_ = test::pattern({1000}, dtype::int16, 2);
  std::string old_bytes_;
  std::string new_bytes_;
  int failures_ = 0;
};

TEST_P(FailingForeignFile, OneIoErrorLeavesTheOldOrTheNewFile) {
  fail_each(failing::once, EIO, [&](const outcome& went, const std::string& failed) {
    return !went.code || ((went.code == errc::io || failed == "mmap") && names_file(went));
  });
  EXPECT_GT(failures_, 8);
}

TEST_P(FailingForeignFile, AFullDiskLeavesTheOldOrTheNewFile) {
  fail_each(failing::ever_after, ENOSPC, [&](const outcome& went, const std::string&) {
    return !went.code || names_file(went);
  });
  EXPECT_GT(failures_, 8);
}

// Linux makes a file system read-only if its device fails.
TEST_P(FailingForeignFile, OnADiskThatBecameReadOnlyIsAnIoError) {
  for (const char* const call : {"pwrite", "fallocate", "posix_fallocate", "fsync", "renameat2"}) {
    prepare(false);
    test::refuse_calls(call, EROFS);
    const outcome went = outcome_of([&] { GetParam().write(path_, newer_); });
    test::refuse_calls(nullptr);
    EXPECT_EQ(went.code.value_or(errc::io), errc::io) << call << ": " << went.text;
    failures_ += went.code.has_value();
  }
  EXPECT_GT(failures_, 1);
}

TEST_P(FailingForeignFile, IsWrittenAfterOneInterruption) {
  fail_each(failing::once, EINTR, [&](const outcome& went, const std::string& failed) {
    for (const char* const repeated : {"pwrite", "openat", "posix_fallocate", "close"})
      if (failed == repeated) return !went.code.has_value();
    // A sync is not repeated after EINTR. The system never interrupts the other calls.
    return !went.code || went.code == errc::io || failed == "mmap";
  });
}

TEST_P(FailingForeignFile, IsWrittenAfterOneShortTransfer) {
  fail_each(failing::partially, 0,
            [&](const outcome& went, const std::string&) { return !went.code; });
}

TEST_P(FailingForeignFile, OneFailedAllocationLeavesTheOldOrTheNewFile) {
  fail_each(failing::allocation, 0, [](const outcome& went, const std::string&) {
    return !went.code || went.code == errc::out_of_memory;
  });
  EXPECT_GT(failures_, 8);
}

TEST_P(FailingForeignFile, IsReadCompletelyOrRefused) {
  for (const auto& [how, number] : {std::pair(failing::once, EIO),
                                    {failing::once, EINTR},
                                    {failing::partially, 0},
                                    {failing::allocation, 0}}) {
    for (std::uint64_t call = 0;; ++call) {
      SCOPED_TRACE(call);
      const std::size_t descriptors = open_descriptors();
      test::fail_calls(how, call, number);
      tensor read;
      const outcome went = outcome_of([&] { read = GetParam().read(path_); });
      test::stop_failing();
      const std::string failed = test::failed_call();
      if (went.code) {
        const bool transfers = failed == "openat" || failed == "pread";
        ASSERT_FALSE(transfers && (number == EINTR || how == failing::partially)) << went.text;
        if (transfers || failed == "fstat") {
          ASSERT_EQ(went.code, errc::io) << went.text;
        }
        if (how == failing::allocation) {
          ASSERT_EQ(went.code, errc::out_of_memory) << went.text;
        } else {
          ASSERT_TRUE(names_file(went)) << failed << ": " << went.text;
        }
      } else {
        ASSERT_EQ(test::row_major_bytes(read), test::row_major_bytes(newer_)) << failed;
      }
      read = {};
      ASSERT_EQ(open_descriptors(), descriptors) << failed;
      ASSERT_EQ(test::mappings_of(path_), 0u) << failed;
      if (failed.empty()) break;
    }
  }
}

// Runs before every call and records the call and the files that a process would leave if it died
// here.
struct witness {
  std::mutex alone;
  std::vector<std::string> calls;
  std::vector<std::string> seen;
  std::string path;
};
witness* watching = nullptr;

void watch(const char* name) {
  const std::lock_guard lock(watching->alone);
  watching->calls.emplace_back(name);
  std::ifstream file(watching->path, std::ios::binary);
  watching->seen.emplace_back(std::istreambuf_iterator<char>(file),
                              std::istreambuf_iterator<char>());
}

TEST_P(FailingForeignFile, HasItsNameOnlyWhenItIsDurable) {
  witness one;
  one.path = path_;
  watching = &one;
  prepare(true);
  test::run_before_calls(&watch);
  GetParam().write(path_, newer_);
  test::run_before_calls(nullptr);

  const auto is = [](const char* name) {
    return [name](const std::string& call) { return call == name; };
  };
  const auto renamed = std::find_if(one.calls.begin(), one.calls.end(), is("renameat2"));
  ASSERT_NE(renamed, one.calls.end());
  const auto synced =
      std::find_if(std::make_reverse_iterator(renamed), one.calls.rend(),
                   [&](const std::string& call) { return call == "fsync" || call == "msync"; });
  ASSERT_NE(synced, one.calls.rend()) << "renamed before it was synced";
  EXPECT_EQ(std::find_if(synced.base(), one.calls.end(), is("pwrite")), one.calls.end());
  EXPECT_EQ(std::count(renamed, one.calls.end(), "fsync"), 1) << "the directory was not synced";

  const auto call = static_cast<std::size_t>(renamed - one.calls.begin());
  for (std::size_t i = 0; i < one.seen.size(); ++i)
    EXPECT_EQ(one.seen[i], i <= call ? old_bytes_ : new_bytes_) << one.calls[i];
}

// XFS, once it could not write its log: the new name is lost, the sync of its folder answers
// success, and every later call fails.
TEST_P(FailingForeignFile, HasNoDurableNameOnceTheFileSystemHasShutDown) {
  static bool renamed;
  for (const bool replaces : {false, true}) {
    prepare(replaces);
    renamed = false;
    test::run_before_calls([](const char* name) {
      const std::string_view call = name;
      if (call == "renameat2") renamed = true;
      if (!renamed || call != "fsync") return;
      test::run_before_calls(nullptr);
      test::fail_calls(failing::ever_after, 1, EIO);  // call 0 is this sync
    });
    const outcome went = outcome_of([&] { GetParam().write(path_, newer_); });
    test::run_before_calls(nullptr);
    test::stop_failing();
    EXPECT_TRUE(renamed);
    EXPECT_EQ(went.code, errc::io) << went.text;
    EXPECT_TRUE(names_file(went)) << went.text;
  }
}

// A user who may write to the folder, and puts another file in the place of the unfinished one.
struct exchanger {
  std::string folder;
  std::string victim;
  bool by_link = false;  // a symbolic one; otherwise a second name of the same file
  std::uint64_t calls_before = 0;
  bool came = false;
};
exchanger* exchanging = nullptr;

void exchange_files(const char*) {
  if (exchanging->calls_before-- != 0) return;
  test::run_before_calls(nullptr);
  exchanging->came = true;
  std::filesystem::path unfinished;
  for (const auto& entry : std::filesystem::directory_iterator(exchanging->folder))
    if (entry.path().extension() == ".partial") unfinished = entry.path();
  if (unfinished.empty()) return;
  std::filesystem::rename(unfinished, exchanging->folder + "/taken");
  if (exchanging->by_link) std::filesystem::create_symlink(exchanging->victim, unfinished);
  else std::filesystem::create_hard_link(exchanging->victim, unfinished);
}

TEST_P(FailingForeignFile, GivesOwnerAndPermissionsToNoFileThatTakesItsPlace) {
  const test::scratch_directory elsewhere;
  exchanger one{.folder = files_.path(), .victim = elsewhere / "victim"};
  exchanging = &one;
  test::write_file(one.victim, "of another owner");
  std::filesystem::permissions(one.victim, std::filesystem::perms(0600));
  for (const bool by_link : {true, false}) {
    one.by_link = by_link;
    for (std::uint64_t call = 0;; ++call) {
      SCOPED_TRACE(call);
      for (const std::string& name : files_.names()) std::filesystem::remove(files_ / name);
      prepare(true);
      std::filesystem::permissions(path_, std::filesystem::perms(0644));
      one.calls_before = call;
      one.came = false;
      test::run_before_calls(&exchange_files);
      outcome_of([&] { GetParam().write(path_, newer_); });
      test::run_before_calls(nullptr);
      ASSERT_EQ(std::filesystem::status(one.victim).permissions(), std::filesystem::perms(0600));
      ASSERT_EQ(test::read_file(one.victim), "of another owner");
      if (!one.came) break;  // there are no more calls
    }
  }
}

// The group bits of a file with an access list are not the rights of its group.
TEST(ForeignFileThatReplacesAnother, IsItsOwnersAloneIfItsAccessListIsUnknown) {
  const test::scratch_directory files;
  const std::string path = files / "a.npy";
  const tensor values = test::pattern({100}, dtype::int16, 1);
  for (const int error_number : {EPERM, ENOSYS, EIO}) {
    test::write_file(path, "old");
    std::filesystem::permissions(path, std::filesystem::perms(0754));
    test::refuse_calls("getxattr", error_number);
    const outcome went = outcome_of([&] { write_npy(path, values); });
    test::refuse_calls(nullptr);
    EXPECT_FALSE(went.code) << went.text;
    EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0700));
  }
}

TEST(ForeignFileThatReplacesAnother, IsItsOwnersAloneIfItsAccessListCannotBeSet) {
  const test::scratch_directory files;
  const std::string path = files / "a.npy";
  test::write_file(path, "old");
  const int failure = test::set_access_list(path, test::access_list_bytes({.others = 4}));
  if (failure == EOPNOTSUPP) GTEST_SKIP() << "this file system has no access lists";
  ASSERT_EQ(failure, 0);
  test::refuse_calls("fsetxattr", ENOSPC);
  const outcome went = outcome_of([&] { write_npy(path, test::pattern({100}, dtype::int16, 1)); });
  test::refuse_calls(nullptr);
  EXPECT_FALSE(went.code) << went.text;
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0600));
  EXPECT_EQ(test::read_access_list(path), "");
}

// File systems that do not know RENAME_NOREPLACE.
TEST(ForeignFileThatMayNotReplace, IsLinkedWhereNamesCannotBeExchanged) {
  const test::scratch_directory files;
  const std::string path = files / "a.npy";
  const tensor values = test::pattern({100}, dtype::int16, 1);
  const npy_write_options refuse{.existing = existing_file::refuse};
  test::refuse_calls("renameat2", EINVAL);
  const outcome first = outcome_of([&] { write_npy(path, values, refuse); });
  const outcome again = outcome_of([&] {
    npy_writer late(path + ".late", dtype::int16, {100}, refuse);
    test::write_file(path + ".late", "somebody else's");
    late.finish();
  });
  test::refuse_calls(nullptr);
  EXPECT_EQ(first.code, std::nullopt) << first.text;
  EXPECT_EQ(again.code, errc::already_exists);
  EXPECT_EQ(test::read_file(path + ".late"), "somebody else's");
  EXPECT_EQ(test::row_major_bytes(read_npy(path)), test::row_major_bytes(values));
  EXPECT_EQ(files.names().size(), 2u);
}

// Reserving the space of a file may take as long as filling it with zeros.
TEST(UnfinishedFileThatGrows, IsNotWaitedForByASuddenEnd) {
  GTEST_FLAG_SET(death_test_style, "fast");
  const test::scratch_directory files;
  const auto end_while_it_grows = [&] {
    ::alarm(15);
    test::run_before_calls([](const char* name) {
      if (std::string_view(name) != "fallocate") return;
      test::run_before_calls(nullptr);
      std::thread([] { exit_without_unfinished_files(7); }).detach();
      for (;;) ::pause();
    });
    const npy_writer writer(files / "a.npy", dtype::int8, {1000});
  };
  EXPECT_EXIT(end_while_it_grows(), testing::ExitedWithCode(7), "");
  EXPECT_EQ(files.names().size(), 0u);
}

// awaited.2
TEST(UnfinishedFileThatLostBytes, IsNeverPublished) {
  const test::scratch_directory files;
  const std::string target = files / "a.raw";
  for (const char* const told : {"msync", "sync_file_range", "close", "fsync"}) {
    unfinished_file file(target, existing_file::replace);
    storage bytes = create_file(file.path(), 1 << 16);
    bytes.data()[7] = std::byte{1};
    test::refuse_calls(told, EIO);
    const outcome flushed = outcome_of([&] { bytes.flush(); });
    bytes.start_writeback({0, bytes.size_bytes()});
    bytes = {};
    const outcome first = outcome_of([&] {
      if (told == std::string("fsync")) file.publish();
    });
    test::refuse_calls(nullptr);
    EXPECT_EQ(flushed.code.has_value(), told == std::string("msync")) << flushed.text;
    EXPECT_EQ(first.code.has_value(), told == std::string("fsync")) << first.text;
    for (int again = 0; again < 2; ++again) {
      const outcome published = outcome_of([&] { file.publish(); });
      EXPECT_EQ(published.code, errc::io) << told;
      EXPECT_NE(published.text.find(target), std::string::npos) << published.text;
    }
    EXPECT_EQ(outcome_of([&] { file.publish_durable(); }).code, errc::io) << told;
  }
  EXPECT_EQ(files.names().size(), 0u);
}

// awaited.1: `create_file` announces the file before the function that calls it returns.
TEST(UnfinishedFileThatLostBytes, IsNotPublishedIfItLostThemWhileItWasMade) {
  const test::scratch_directory files;
  unfinished_file file(files / "a.raw", existing_file::replace);
  outcome flushed;
  file.create([&] {
    storage bytes = create_file(file.path(), 1 << 16);
    bytes.data()[7] = std::byte{1};
    test::refuse_calls("msync", EIO);
    flushed = outcome_of([&] { bytes.flush(); });
    test::refuse_calls(nullptr);
  });
  EXPECT_EQ(flushed.code, errc::io) << flushed.text;
  EXPECT_EQ(outcome_of([&] { file.publish(); }).code, errc::io);
}

// Elements that must be copied, in a file that another process truncates before any one of the
// calls.
TEST(ForeignFileThatShrinks, WhileItIsCopiedIsAnError) {
  static const test::scratch_directory files;
  static const std::string path = files / "a.raw";
  static std::uint64_t calls_before;
  const std::string bytes(4001, 'r');
  const raw_read_options odd{.shape = dims{2000}, .offset = 1};
  int refused = 0;
  for (std::uint64_t call = 0;; ++call) {
    SCOPED_TRACE(call);
    test::write_file(path, bytes);
    calls_before = call;
    test::run_before_calls([](const char*) {
      if (calls_before-- != 0) return;
      test::run_before_calls(nullptr);
      std::filesystem::resize_file(path, 2000);
    });
    std::optional<tensor> read;
    const outcome went = outcome_of([&] { read = read_raw(path, dtype::int16, odd); });
    test::run_before_calls(nullptr);
    if (std::filesystem::file_size(path) == bytes.size()) break;  // there are no more calls
    if (went.code) {
      // The file was too short at the beginning, or became too short.
      ASSERT_TRUE(went.code == errc::io || went.code == errc::invalid_argument) << went.text;
      ++refused;
    } else {
      ASSERT_EQ(test::row_major_bytes(*read), bytes.substr(1));
    }
  }
  EXPECT_GT(refused, 1);
}

INSTANTIATE_TEST_SUITE_P(Formats, FailingForeignFile, testing::ValuesIn(test::foreign_formats()),
                         [](const auto& made) { return made.param.name; });

}  // namespace
}  // namespace shale
