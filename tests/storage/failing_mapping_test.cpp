// Makes every call to the operating system and every allocation fail in turn while files are
// created, mapped, grown and flushed, and while memory is shared. There is a clear error or none,
// and nothing leaks.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <ostream>
#include <string_view>
#include <utility>
#include <vector>

#include "shale/mapped_file.hpp"
#include "shale/shared_memory.hpp"
#include "storage/blocks/backing.hpp"
#include "storage/mapped/scratch_file.hpp"
#include "storage/pool/pools/housekeeper.hpp"
#include "support/bounded.hpp"
#include "support/failing_calls.hpp"
#include "support/failures.hpp"
#include "support/fork_elsewhere.hpp"
#include "support/ordinary_user.hpp"
#include "support/process_footprint.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

using test::failing;
using test::outcome;
using test::outcome_of;
using test::process_footprint;

constexpr std::size_t some_bytes = 3 * 4096 + 100;
constexpr std::size_t more_bytes = 9 * 4096;

void fill(storage& bytes, char value) {
  std::fill_n(bytes.data(), bytes.size_bytes(), std::byte(value));
}

// An operation on a file that contains `some_bytes` times 'o', if it exists.
struct use {
  std::string name;
  bool file_is_there;
  std::function<void(const std::string& path)> run;
  std::string afterwards;  // the file's content after success
  bool all_or_nothing;     // after a failure the content is unchanged
};

std::ostream& operator<<(std::ostream& to, const use& shown) { return to << shown.name; }

std::string holding(std::size_t bytes, char value) { return std::string(bytes, value); }

const std::vector<use>& uses() {
  static const std::vector<use> all{
      {"Creating", false, [](const std::string& path) { create_file(path, some_bytes); },
       holding(some_bytes, '\0'), true},
      {"Replacing", true,
       [](const std::string& path) {
         create_file(path, more_bytes, {.existing = existing_file::replace});
       },
       holding(more_bytes, '\0'), true},
      {"Opening", true,
       [](const std::string& path) {
         storage bytes = create_file(path, some_bytes, {.existing = existing_file::keep});
         fill(bytes, 'n');
         bytes.flush();
       },
       holding(some_bytes, 'n'), true},
      {"Growing", true,
       [](const std::string& path) {
         storage bytes =
             map_file(path, {.access = access::read_write, .reserve_bytes = std::size_t{1} << 20});
         bytes.grow(more_bytes);
         fill(bytes, 'g');
         bytes.start_writeback({0, more_bytes});
         bytes.finish_writeback({0, more_bytes});
         bytes.flush();
       },
       holding(more_bytes, 'g'), false},
      {"Reading", true,
       [](const std::string& path) {
         const storage bytes = map_file(path, {.populate = true});
         bytes.advise(access_pattern::sequential, {0, some_bytes});
         bytes.prefetch({0, some_bytes});
         bytes.evict({0, some_bytes}, eviction::system);
         for (std::size_t i = 0; i < some_bytes; ++i)
           if (bytes.data()[i] != std::byte('o')) throw std::logic_error("read something else");
       },
       holding(some_bytes, 'o'), true},
      {"CopyOnWrite", true,
       [](const std::string& path) {
         storage bytes = map_file(path, {.access = access::copy_on_write});
         fill(bytes, 'c');
         bytes.flush();
       },
       holding(some_bytes, 'o'), true},
  };
  return all;
}

class FailingMapping : public testing::TestWithParam<use> {
 protected:
  FailingMapping() {
    // The test counts descriptors, so the housekeeper must not open files in /proc meanwhile.
    detail::exchange_memory_probe([] { return detail::system_memory(); });
    prepare();
    // Create everything that a process creates only once before counting.
    GetParam().run(path_);
    EXPECT_EQ(test::read_file(path_), GetParam().afterwards);
    test::fail_calls(failing::once, 0, EIO);
    outcome_of([&] { GetParam().run(path_); });
    test::stop_failing();
  }

  void prepare() const {
    std::filesystem::remove(path_);
    if (GetParam().file_is_there) test::write_file(path_, holding(some_bytes, 'o'));
  }

  // Makes one call after the other fail. `allowed` decides whether an outcome is right.
  template <class Allowed>
  void fail_each(failing how, int number, Allowed allowed) {
    for (std::uint64_t call = 0;; ++call) {
      SCOPED_TRACE("call " + std::to_string(call));
      prepare();
      const process_footprint before = process_footprint::now();
      test::fail_calls(how, call, number);
      const outcome went = outcome_of([&] { GetParam().run(path_); });
      test::stop_failing();
      const std::string failed = test::failed_call();
      failures_ += went.code.has_value();
      ASSERT_TRUE(allowed(went, failed)) << failed << ": " << went.text;
      ASSERT_EQ(process_footprint::now(), before)
          << failed << ": " << to_string(process_footprint::now());
      expect_file(went, failed);
      if (HasFatalFailure() || failed.empty()) break;  // there are no more calls
    }
  }

  void expect_file(const outcome& went, const std::string& failed) const {
    const auto names = files_.names();
    if (names.empty() && !GetParam().file_is_there && went.code) return;
    ASSERT_EQ(names, std::vector<std::string>{"a.bytes"}) << failed << ": " << went.text;
    const std::string bytes = test::read_file(path_);
    if (!went.code) {
      ASSERT_TRUE(bytes == GetParam().afterwards) << failed;
    } else if (GetParam().all_or_nothing) {
      ASSERT_TRUE(bytes == GetParam().afterwards || bytes == holding(some_bytes, 'o'))
          << failed << ": " << went.text;
    } else {
      ASSERT_TRUE(bytes.size() == some_bytes || bytes.size() == GetParam().afterwards.size())
          << failed << ": " << went.text;
    }
  }

  bool names_file(const outcome& went) const { return went.text.find(path_) != std::string::npos; }

  test::scratch_directory files_;
  const std::string path_ = files_ / "a.bytes";
  int failures_ = 0;
};

TEST_P(FailingMapping, WithAnIoErrorOnce) {
  fail_each(failing::once, EIO, [&](const outcome& went, const std::string& failed) {
    return !went.code || (went.code == errc::io && names_file(went)) || failed == "mmap";
  });
  EXPECT_GT(failures_, 2);
}

TEST_P(FailingMapping, WithoutSpaceEverAfter) {
  fail_each(failing::ever_after, ENOSPC, [&](const outcome& went, const std::string&) {
    return !went.code || names_file(went) || went.code == errc::out_of_memory;
  });
  EXPECT_GT(failures_, 2);
}

TEST_P(FailingMapping, WithAnInterruptionOnce) {
  fail_each(failing::once, EINTR, [&](const outcome& went, const std::string& failed) {
    for (const char* const repeated : {"openat", "fallocate", "close"})
      if (failed == repeated) return !went.code.has_value();
    // A sync is not repeated after EINTR. The system never interrupts the other calls.
    return !went.code || names_file(went) || failed == "mmap";
  });
}

TEST_P(FailingMapping, WithoutMemoryOnce) {
  fail_each(failing::once, ENOMEM, [&](const outcome& went, const std::string&) {
    return !went.code || went.code == errc::out_of_memory || names_file(went);
  });
  fail_each(failing::allocation, 0, [](const outcome& went, const std::string&) {
    return !went.code || went.code == errc::out_of_memory;
  });
  EXPECT_GT(failures_, 2);
}

INSTANTIATE_TEST_SUITE_P(Of, FailingMapping, testing::ValuesIn(uses()),
                         [](const auto& made) { return made.param.name; });

class FailingSharedMemory : public testing::TestWithParam<shared_lifetime> {
 protected:
  FailingSharedMemory() {
    detail::exchange_memory_probe([] { return detail::system_memory(); });
    share();
    test::fail_calls(failing::once, 0, EIO);
    outcome_of([&] { share(); });
    test::stop_failing();
    remove_shared(name_);
  }
  ~FailingSharedMemory() override { remove_shared(name_); }

  // Attaches two handles; each sees the stores of the other.
  void share() const {
    storage made = create_shared(name_, some_bytes,
                                 {.lifetime = GetParam(), .reserve_bytes = std::size_t{1} << 20});
    storage seen = open_shared(name_);
    fill(made, 's');
    if (seen.data()[some_bytes - 1] != std::byte('s')) throw std::logic_error("saw something else");
    made.grow(more_bytes);
  }

  // After any failure this process holds nothing, and the name can be used again.
  void fail_each(failing how, int number) {
    for (std::uint64_t call = 0;; ++call) {
      SCOPED_TRACE("call " + std::to_string(call));
      const process_footprint before = process_footprint::now();
      test::fail_calls(how, call, number);
      const outcome went = outcome_of([&] { share(); });
      test::stop_failing();
      const std::string failed = test::failed_call();
      failures_ += went.code.has_value();
      ASSERT_EQ(process_footprint::now(), before)
          << failed << ": " << to_string(process_footprint::now());
      if (went.code && how != failing::allocation) {
        ASSERT_NE(went.text.find(name_), std::string::npos) << failed << ": " << went.text;
      }
      for (const shared_segment& segment : list_shared(name_))
        ASSERT_FALSE(segment.attached) << failed;
      const bool is_left = GetParam() == shared_lifetime::manual && !list_shared(name_).empty();
      if (is_left) remove_shared(name_);
      const outcome again = outcome_of([&] { share(); });
      ASSERT_FALSE(again.code) << "after " << failed << ": " << again.text;
      remove_shared(name_);
      if (failed.empty()) break;
    }
    EXPECT_GT(failures_, 5);
  }

  const std::string name_ = "shale-failing-" + std::to_string(::getpid());
  int failures_ = 0;
};

TEST_P(FailingSharedMemory, WithAnIoErrorOnce) { fail_each(failing::once, EIO); }
TEST_P(FailingSharedMemory, WithoutSpaceEverAfter) { fail_each(failing::ever_after, ENOSPC); }
TEST_P(FailingSharedMemory, WithoutMemoryOnce) { fail_each(failing::allocation, 0); }

INSTANTIATE_TEST_SUITE_P(Of, FailingSharedMemory,
                         testing::Values(shared_lifetime::creator, shared_lifetime::counted,
                                         shared_lifetime::manual),
                         [](const auto& made) {
                           return std::string(made.param == shared_lifetime::creator   ? "Creator"
                                              : made.param == shared_lifetime::counted ? "Counted"
                                                                                       : "Manual");
                         });

class FailingScratchFile : public testing::TestWithParam<bool> {
 protected:
  FailingScratchFile() {
    detail::exchange_memory_probe([] { return detail::system_memory(); });
    test::let_files_be_unnamed(GetParam());
    read_back();
    test::fail_calls(failing::once, 0, EIO);
    outcome_of([&] { read_back(); });
    test::stop_failing();
  }
  ~FailingScratchFile() override { test::let_files_be_unnamed(true); }

  // Whatever is read is what was written.
  void read_back() const {
    std::vector<std::byte> bytes(some_bytes, std::byte('w'));
    detail::scratch_file file(100 + some_bytes, files_.path());
    file.write(bytes, 100);
    std::fill(bytes.begin(), bytes.end(), std::byte{});
    file.read(bytes, 100);
    const storage mapped = file.map(100 + some_bytes);
    if (bytes != std::vector<std::byte>(some_bytes, std::byte('w')) ||
        mapped.data()[99 + some_bytes] != std::byte('w'))
      throw std::logic_error("read something else");
    mapped.check();
  }

  void fail_each(failing how, int number) {
    for (std::uint64_t call = 0;; ++call) {
      SCOPED_TRACE("call " + std::to_string(call));
      const process_footprint before = process_footprint::now();
      test::fail_calls(how, call, number);
      const outcome went = outcome_of([&] { read_back(); });
      test::stop_failing();
      const std::string failed = test::failed_call();
      failures_ += went.code.has_value();
      asked_for_lost_writes_ += failed == "sync_file_range";
      ASSERT_EQ(process_footprint::now(), before)
          << failed << ": " << to_string(process_footprint::now());
      ASSERT_EQ(files_.names(), std::vector<std::string>{}) << failed;
      if (how == failing::once && is_needed(failed)) {
        ASSERT_TRUE(went.code.has_value()) << failed;
      }
      if (failed.empty()) break;
    }
  }

  static bool is_needed(const std::string& call) {
    return call == "openat" || call == "pwrite" || call == "pread" || call == "sync_file_range";
  }

  test::scratch_directory files_;
  int failures_ = 0;
  int asked_for_lost_writes_ = 0;
};

// scratch.1, scratch.2
TEST_P(FailingScratchFile, WithAnIoErrorOnce) {
  fail_each(failing::once, EIO);
  EXPECT_GE(failures_, 3);
  EXPECT_EQ(asked_for_lost_writes_, 2) << "before the file is mapped, and by the mapping";
}
TEST_P(FailingScratchFile, WithoutSpaceEverAfter) {
  fail_each(failing::ever_after, ENOSPC);
  EXPECT_GE(failures_, 3);
}
TEST_P(FailingScratchFile, WithoutMemoryOnce) {
  fail_each(failing::allocation, 0);
  EXPECT_GT(failures_, 1);
}

// Half of the bytes at a time, and interrupted calls, change nothing.
TEST_P(FailingScratchFile, InParts) {
  fail_each(failing::partially, 0);
  EXPECT_EQ(failures_, 0);
}

INSTANTIATE_TEST_SUITE_P(Of, FailingScratchFile, testing::Bool(), [](const auto& made) {
  return std::string(made.param ? "Unnamed" : "Removed");
});

// Makes one call of that name fail, right after running something else.
class failing_after {
 public:
  failing_after(const char* name, int error_number, std::function<void()> run) {
    now() = {name, error_number, std::move(run)};
    test::run_before_calls([](const char* called) {
      if (now().name.empty() || now().name != called) return;
      const plan due = std::exchange(now(), {});
      due.run();
      test::refuse_calls(called, due.number);
    });
  }
  ~failing_after() {
    test::run_before_calls(nullptr);
    test::refuse_calls(nullptr);
  }
  failing_after(const failing_after&) = delete;
  failing_after& operator=(const failing_after&) = delete;

  bool has_failed() const { return now().name.empty(); }

 private:
  struct plan {
    std::string name;
    int number = 0;
    std::function<void()> run;
  };
  static plan& now() {
    static plan one;
    return one;
  }
};

void expect_growth_of_others_kept(const std::string& path, storage mine, storage other) {
  for (const auto& [call, number] : {std::pair("fallocate", ENOSPC), {"mmap", ENOMEM}}) {
    SCOPED_TRACE(call);
    const std::size_t before = other.size_bytes();
    outcome went;
    {
      const failing_after failure(call, number, [&] {
        other.grow(before + more_bytes);
        fill(other, 'o');
      });
      went = outcome_of([&] { mine.grow(before + some_bytes); });
      ASSERT_TRUE(failure.has_failed());
    }
    EXPECT_TRUE(went.code.has_value());
    ASSERT_GE(std::filesystem::file_size(path), before + more_bytes);
    EXPECT_EQ(outcome_of([&] { other.check(); }).code, std::nullopt);
    EXPECT_EQ(std::count(other.data(), other.data() + other.size_bytes(), std::byte('o')),
              before + more_bytes);
    mine.grow(other.size_bytes());
  }
}

TEST(FailingGrowth, LeavesAFileWhatOthersHaveAdded) {
  const test::scratch_directory files;
  const std::string path = files / "a.bytes";
  constexpr std::size_t room = std::size_t{1} << 20;
  storage made = create_file(path, some_bytes, {.reserve_bytes = room});
  expect_growth_of_others_kept(
      path, made, map_file(path, {.access = access::read_write, .reserve_bytes = room}));
}

TEST(FailingGrowth, LeavesASegmentWhatOthersHaveAdded) {
  constexpr std::size_t room = std::size_t{1} << 20;
  const std::string name = "shale-failing-growth-" + std::to_string(::getpid());
  storage made = create_shared(name, some_bytes, {.reserve_bytes = room});
  expect_growth_of_others_kept("/dev/shm/shale." + name, made,
                               open_shared(name, {.reserve_bytes = room}));
}

TEST(FailingGrowth, GrowsFilesWhoseSpaceCannotBeReserved) {
  const test::scratch_directory files;
  const std::string path = files / "a.bytes";
  test::refuse_calls("fallocate", EOPNOTSUPP);
  storage bytes = create_file(path, some_bytes, {.reserve_bytes = std::size_t{1} << 20});
  fill(bytes, 'o');
  bytes.grow(300'000);
  test::refuse_calls(nullptr);
  EXPECT_EQ(test::read_file(path), holding(some_bytes, 'o') + holding(300'000 - some_bytes, '\0'));
  struct stat about {};
  ASSERT_EQ(::stat(path.c_str(), &about), 0);
  EXPECT_GE(about.st_blocks * 512, 300'000);
}

// They may be kept for this user, which the system does not tell.
TEST(BlocksKeptForSomeUsers, AreRefusedByTheSystemAlone) {
  const test::scratch_directory files;
  storage bytes =
      create_file(files / "a.bytes", some_bytes, {.reserve_bytes = std::size_t{1} << 20});
  test::keep_free_blocks(true);
  const outcome went = outcome_of([&] {
    const test::ordinary_user rights;
    bytes.grow(300'000);
  });
  test::keep_free_blocks(false);
  EXPECT_FALSE(went.code) << went.text;
  EXPECT_EQ(bytes.size_bytes(), 300'000u);
}

// As the kernel does it for users who may not ask.
TEST(Residency, CountsAllBytesIfTheSystemDoesNotTell) {
  const test::scratch_directory files;
  const storage bytes = create_file(files / "a.bytes", more_bytes);
  test::refuse_calls("mincore", EPERM);
  const std::size_t resident = bytes.resident_bytes({100, more_bytes - 200});
  test::refuse_calls(nullptr);
  EXPECT_EQ(resident, more_bytes - 200);
}

// As in a child that was made by `clone`, to which writable mappings are not passed on.
TEST(Residency, OfPagesThatAreNotMappedIsAnError) {
  const test::scratch_directory files;
  const storage bytes = create_file(files / "a.bytes", more_bytes);
  test::refuse_calls("mincore", ENOMEM);
  const auto [code, text] = outcome_of([&] { bytes.resident_bytes(); });
  test::refuse_calls(nullptr);
  EXPECT_EQ(code, errc::unsupported) << text;
  EXPECT_NE(text.find("open the file in the child"), std::string::npos) << text;
}

// Another thread may close a descriptor at any moment, and open another file under its number.
TEST(ATransfer, DoesNotCountIfItReadAnotherFileThatGotTheNumber) {
  const test::scratch_directory files;
  static std::string path, other;
  path = files / "a.bytes", other = files / "b.bytes";
  const storage bytes = create_file(path, more_bytes);
  storage others = create_file(other, more_bytes);
  fill(others, 'b');
  test::run_before_calls([](const char* called) {
    if (std::string_view(called) != "pread") return;
    test::run_before_calls(nullptr);
    const int from = test::descriptors_of(other).front();
    for (const int number : test::descriptors_of(path)) ::dup2(from, number);
  });
  std::vector<std::byte> into(100);
  const bool counts = detail::read_file(bytes, 0, into);
  test::run_before_calls(nullptr);
  EXPECT_EQ(into.front(), std::byte{'b'});
  EXPECT_FALSE(counts);
}

// Signals that come faster than the call can end.
TEST(FailingGrowth, IsAnErrorWhereEachAttemptIsInterrupted) {
  test::expect_to_end([] {
    const test::scratch_directory files;
    const std::string path = files / "a.bytes";
    storage bytes = create_file(path, some_bytes, {.reserve_bytes = std::size_t{64} << 20});
    test::refuse_calls("fallocate", EINTR);
    EXPECT_EQ(test::code_of([&] { bytes.grow(std::size_t{60} << 20); }), errc::io);
    test::refuse_calls(nullptr);
    EXPECT_EQ(std::filesystem::file_size(path), some_bytes);
    bytes.grow(300'000);
    EXPECT_EQ(std::filesystem::file_size(path), 300'000U);
  });
}

// Reserving space may take long, for example where the system fills the file with zeros.
TEST(FailingGrowth, IsNotWaitedForByForks) {
  const test::hang_alarm limit;
  const test::scratch_directory folder;
  storage grown = create_file(folder / "grown", some_bytes, {.reserve_bytes = more_bytes});
  fill(grown, 'o');
  static bool forked = false;
  test::run_before_calls([](const char* called) {
    if (std::string_view(called) != "fallocate") return;
    test::run_before_calls(nullptr);
    forked = test::forks_elsewhere();
  });
  grown.grow(more_bytes);
  test::run_before_calls(nullptr);
  EXPECT_TRUE(forked);
  EXPECT_EQ(grown.size_bytes(), more_bytes);
  EXPECT_EQ(grown.data()[some_bytes - 1], std::byte{'o'});
  EXPECT_EQ(grown.data()[more_bytes - 1], std::byte{0});
}

TEST(LeavingTogether, TakesACountedSegmentsNameAway) {
  const std::string name = "shale-leaving-" + std::to_string(::getpid());
  storage first = create_shared(name, some_bytes, {.lifetime = shared_lifetime::counted});
  static storage second;
  second = open_shared(name);
  test::run_before_calls([](const char* called) {
    if (std::string_view(called) == "close") std::exchange(second, {});
  });
  first = {};
  test::run_before_calls(nullptr);
  EXPECT_EQ(second.size_bytes(), 0u);
  EXPECT_TRUE(list_shared(name).empty());
  remove_shared(name);
}

// The system reports these errors only here: ignoring one would mean that lost bytes are reported
// as durable.
TEST(FailingWriteback, IsReportedWithFileAndRange) {
  const test::scratch_directory files;
  const std::string path = files / "a.bytes";
  storage bytes = create_file(path, more_bytes);
  fill(bytes, 'w');
  const byte_range second{4096, 8192};
  const std::pair<const char*, std::function<void()>> ways[] = {
      {"msync", [&] { bytes.flush(second); }},
      {"sync_file_range", [&] { bytes.finish_writeback(second); }},
  };
  for (const auto& [call, run] : ways) {
    SCOPED_TRACE(call);
    for (const auto& [number, code] :
         {std::pair(EIO, errc::io), {ENOSPC, errc::out_of_space}, {EINTR, errc::io}}) {
      bytes = map_file(path, {.access = access::read_write});
      fill(bytes, 'w');
      test::fail_calls(failing::once, 0, number);
      const outcome went = outcome_of(run);
      test::stop_failing();
      EXPECT_EQ(test::failed_call(), call);
      EXPECT_EQ(went.code, code);
      EXPECT_NE(went.text.find("byte 4096"), std::string::npos) << went.text;
      EXPECT_NE(went.text.find("8192 bytes"), std::string::npos) << went.text;
      EXPECT_NE(went.text.find(path), std::string::npos) << went.text;
      // mapped.4: the system itself would not report the error again.
      EXPECT_EQ(outcome_of(run).code, code);
      EXPECT_EQ(outcome_of([&] { bytes.check(); }).code, code);
    }
    bytes = map_file(path, {.access = access::read_write});
    EXPECT_EQ(outcome_of(run).code, std::nullopt);
  }
}

// mapped.4: a call that only starts writing does not throw, but the system tells nobody else.
TEST(FailingWriteback, IsRememberedByCallsThatDoNotThrow) {
  const test::scratch_directory files;
  const std::string path = files / "a.bytes";
  create_file(path, more_bytes);
  const storage other = map_file(path, {.access = access::read_write});
  for (const bool flushes : {false, true}) {
    storage bytes = map_file(path, {.access = access::read_write});
    fill(bytes, 'w');
    test::fail_calls(failing::once, 0, EIO);
    if (flushes) bytes.flush({0, more_bytes}, flush_mode::async);
    else bytes.start_writeback({0, more_bytes});
    test::stop_failing();
    EXPECT_EQ(test::failed_call(), "sync_file_range");
    for (const storage& mapped : {bytes, other}) {
      EXPECT_EQ(outcome_of([&] { mapped.check(); }).code, errc::io);
      EXPECT_EQ(outcome_of([&] { mapped.flush(); }).code, errc::io);
    }
  }
}

// scratch.2: nobody flushes the mapping of a temporary file, so it asks the system itself.
TEST(FailingWriteback, OfATemporaryFileIsAskedForByItsMapping) {
  const test::scratch_directory files;
  detail::scratch_file file(100, files.path());
  file.write(std::vector<std::byte>(100), 0);
  const storage mapped = file.map(100);
  mapped.check();
  test::refuse_calls("sync_file_range", EIO);
  EXPECT_EQ(outcome_of([&] { mapped.check(); }).code, errc::io);
  test::refuse_calls(nullptr);
  // mapped.4: the system itself would not report the error again.
  EXPECT_EQ(outcome_of([&] { mapped.check(); }).code, errc::io);
  EXPECT_EQ(outcome_of([&] { mapped.populate({0, 100}); }).code, errc::io);
}

// Some sandboxes cannot wait for one page. Then all pages are written.
TEST(FailingWriteback, IsAskedForByWritingIfNobodyCanWait) {
  const test::scratch_directory files;
  detail::scratch_file file(100, files.path());
  file.write(std::vector<std::byte>(100), 0);
  test::refuse_calls("sync_file_range", ENOSYS);
  EXPECT_EQ(outcome_of([&] { file.check(); }).code, std::nullopt);
  test::fail_calls(failing::once, 0, EIO);
  EXPECT_EQ(outcome_of([&] { file.check(); }).code, errc::io);
  test::stop_failing();
  test::refuse_calls(nullptr);
  EXPECT_EQ(test::failed_call(), "fdatasync");
}

}  // namespace
}  // namespace shale
