// Makes every call to the operating system and every allocation fail in turn, while containers are
// created, changed and read. There is a clear error or none, nothing leaks, and the file holds the
// old generation or the new one.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "array/array_history.hpp"
#include "array/test_support.hpp"
#include "format/container/container_file.hpp"
#include "shale/executor.hpp"
#include "shale/expr.hpp"
#include "storage/pool/pools/housekeeper.hpp"
#include "support/bounded.hpp"
#include "support/failing_calls.hpp"
#include "support/long_run.hpp"
#include "support/process_footprint.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

using test::failing;
using test::held_after;
using test::held_by;
using test::mappings_of;
using test::open_descriptors;
using test::outcome;
using test::outcome_of;
using test::run_long;

// The files are in memory if possible and unless the environment says otherwise: they are synced
// thousands of times, and need not survive.
[[maybe_unused]] const bool in_memory =
    ::access("/dev/shm", W_OK) == 0 && ::setenv("TMPDIR", "/dev/shm", 0) == 0;

class FailingCalls : public testing::Test {
 protected:
  FailingCalls() {
    // The test counts descriptors, so the housekeeper must not open files in /proc meanwhile.
    detail::exchange_memory_probe([] { return detail::system_memory(); });
    // Create everything that a process creates only once before anything fails.
    const auto file = container::create(path_);
    file_bytes_.push_back(test::read_file(path_));
    for (int step = 1; step <= test::array_steps; ++step) {
      container writer = container::open(path_, open_mode::write);
      transaction change = writer.begin();
      test::tell_step(step, change);
      change.commit();
      EXPECT_EQ(held_by(writer.latest()), held_after(step));
      file_bytes_.push_back(test::read_file(path_));
    }
  }
  ~FailingCalls() override {
    test::let_files_be_unnamed(true);
    test::refuse_calls(nullptr);
  }

  // Step 0 creates the container; then come the transactions; the last step reads.
  static constexpr int reading = test::array_steps + 1;

  // Makes the file anew, with the content that it has before a step.
  void prepare(int step) {
    for (const std::string& name : directory_.names()) std::filesystem::remove(directory_ / name);
    if (step > 0) test::write_file(path_, file_bytes_[static_cast<std::size_t>(step) - 1]);
  }

  // Runs a step; `file` is the container once it is open.
  void run(int step, std::optional<container>& file, bool& reported) {
    if (step == 0) {
      file = container::create(path_);
      reported = true;
      return;
    }
    file = container::open(path_, step == reading ? open_mode::read : open_mode::write);
    if (step == reading) {
      if (held_by(file->latest()) != held_after(test::array_steps))
        throw std::logic_error("read something else");
      return;
    }
    transaction change = file->begin();
    test::tell_step(step, change);
    if (without_waiting_) run_without_waiting(*file, change);
    else change.commit();
    reported = true;
  }

  // Commits a step, and a generation on it that leaves its arrays as they are, without waiting.
  void run_without_waiting(container& file, transaction& step) {
    pending_ = step.commit_async();
    transaction later = file.begin();
    later.set_level_attribute("", "note", "later");
    later.commit_async().wait();
    if (!pending_->durable()) throw std::logic_error("durable before what it is built on");
  }

  // Returns when nothing is being published any more.
  void wait_for_pending() {
    if (pending_) static_cast<void>(outcome_of([&] { pending_->wait(); }));
    pending_.reset();
  }

  // The file must hold the content from before or after the step; from after it if success was
  // reported.
  void expect_old_or_new(int step, bool reported) {
    const auto names = directory_.names();
    if (step == 0 && names.empty() && !reported) return;
    ASSERT_EQ(names, std::vector<std::string>{"failing.shale"});
    const container file = container::open(path_, open_mode::write);
    const snapshot now = file.latest();
    const int last = std::min(step, test::array_steps);
    const auto generation = static_cast<int>(now.generation());
    const int after = last + (without_waiting_ ? 2 : 1);
    ASSERT_TRUE(generation == after ||
                (generation >= last && generation < after && step > 0 && !reported))
        << generation;
    ASSERT_EQ(held_by(now), held_after(std::min(generation - 1, last)));
    ASSERT_EQ(test::findings_of(file), "");
  }

  // A caller that goes on with the same object can commit another generation, or gets an error that
  // says to open the container anew.
  void expect_to_go_on(container& file) {
    const auto before = file.latest().generation();
    const outcome went = outcome_of([&] {
      transaction change = file.begin();
      change.create("after", {.dtype = dtype::float32, .shape = {100}}).write(expr(9));
      change.commit();
    });
    if (went.code) {
      ASSERT_EQ(went.code, errc::io) << went.text;
      ASSERT_NE(went.text.find("open the container anew"), std::string::npos) << went.text;
      ASSERT_EQ(file.latest().generation(), before);
    } else {
      ASSERT_EQ(file.latest().generation(), before + 1);
      ASSERT_EQ(held_by(file.latest()).at("after"), std::vector<float>(100, 9));
      ASSERT_EQ(test::findings_of(file), "");
    }
  }

  // Makes one call after the other fail, in every step. `allowed` decides whether an outcome is
  // right.
  template <class Allowed>
  void fail_each(failing how, int number, Allowed allowed) {
    int failures = 0;
    const int first_step = without_waiting_ ? 1 : 0;
    const int last_step = without_waiting_ ? test::array_steps : reading;
    for (int step = first_step; step <= last_step; ++step) {
      for (std::uint64_t call = 0;; ++call) {
        SCOPED_TRACE("step " + std::to_string(step) + ", call " + std::to_string(call));
        prepare(step);
        const std::size_t descriptors = open_descriptors();
        bool reported = false;
        outcome went;
        std::string failed;
        {
          std::optional<container> file;
          test::fail_calls(how, call, number);
          went = outcome_of([&] { run(step, file, reported); });
          test::stop_failing();
          failed = test::failed_call();
          wait_for_pending();
          failures += went.code.has_value();
          ASSERT_TRUE(allowed(went, failed)) << failed << ": " << went.text;
          if (how != failing::partially && (failed == "fdatasync" || failed == "fsync")) {
            ASSERT_TRUE(went.code) << "a failed sync was passed over";
          }
          if (went.code) {
            ASSERT_EQ(went.text.find("[corrupt]"), std::string::npos) << went.text;
          }
          if (call % 2 == 0 && file && step > 0 && step < reading) {
            ASSERT_NO_FATAL_FAILURE(expect_to_go_on(*file)) << failed << ": " << went.text;
            file.reset();
          } else {
            file.reset();
            ASSERT_NO_FATAL_FAILURE(expect_old_or_new(step, reported))
                << failed << ": " << went.text;
          }
        }
        if (without_waiting_) wait_until([&] { return open_descriptors() == descriptors; });
        ASSERT_EQ(open_descriptors(), descriptors) << failed;
        ASSERT_EQ(mappings_of(path_), 0u) << failed;
        if (failed.empty()) break;  // the step has no more calls
      }
    }
    failures_ = failures;
  }

  // For what another thread does soon, after it has told of the end.
  template <class Condition>
  static void wait_until(Condition done) {
    const test::hang_alarm limit;
    while (!done()) std::this_thread::yield();
  }

  // An error of a call on the file names the file.
  bool names_file(const outcome& went) const {
    return went.text.find("random bytes") != std::string::npos ||
           went.text.find(path_) != std::string::npos ||
           went.text.find(directory_.path()) != std::string::npos;
  }

  test::scratch_directory directory_;
  const std::string path_ = directory_ / "failing.shale";
  std::vector<std::string> file_bytes_;  // after each step
  int failures_ = 0;
  bool without_waiting_ = false;           // how the transactions are committed
  std::optional<pending_commit> pending_;  // that of the step
};

TEST_F(FailingCalls, WithAnIoErrorOnce) {
  fail_each(failing::once, EIO, [&](const outcome& went, const std::string& failed) {
    // Hints and calls that only clean up may fail without an error.
    return !went.code || (went.code == errc::io && names_file(went)) || failed == "mmap";
  });
  EXPECT_GT(failures_, 50);
}

TEST_F(FailingCalls, WithoutSpaceEverAfter) {
  fail_each(failing::ever_after, ENOSPC, [&](const outcome& went, const std::string&) {
    return !went.code || names_file(went) || went.code == errc::out_of_memory;
  });
  EXPECT_GT(failures_, 50);
}

TEST_F(FailingCalls, WithoutDescriptorsOnce) {
  fail_each(failing::once, EMFILE, [&](const outcome& went, const std::string& failed) {
    return !went.code || (went.code == errc::io && names_file(went)) || failed == "mmap";
  });
}

TEST_F(FailingCalls, WithoutMemoryOnce) {
  fail_each(failing::once, ENOMEM, [&](const outcome& went, const std::string& failed) {
    return !went.code || went.code == errc::out_of_memory || failed == "fdatasync" ||
           failed == "fstat" || failed == "getrandom";
  });
  EXPECT_GT(failures_, 20);
}

TEST_F(FailingCalls, WithAnInterruptionOnceGoWell) {
  fail_each(failing::once, EINTR, [&](const outcome& went, const std::string& failed) {
    for (const char* const repeated : {"pread", "pwrite", "openat", "fallocate", "posix_fallocate"})
      if (failed == repeated) return !went.code.has_value();
    // A sync is not repeated after EINTR. The system never interrupts the other calls.
    return !went.code || went.code == errc::io || failed == "mmap";
  });
}

TEST_F(FailingCalls, WithAShortTransferOnceGoWell) {
  fail_each(failing::partially, 0,
            [&](const outcome& went, const std::string&) { return !went.code; });
}

TEST_F(FailingCalls, WhereFilesHaveTemporaryNamesFirst) {
  test::let_files_be_unnamed(false);
  for (const int number : {EIO, ENOSPC}) {
    for (std::uint64_t call = 0;; ++call) {
      SCOPED_TRACE(call);
      prepare(0);
      const std::size_t descriptors = open_descriptors();
      std::optional<container> file;
      bool reported = false;
      test::fail_calls(failing::once, call, number);
      const outcome went = outcome_of([&] { run(0, file, reported); });
      test::stop_failing();
      file.reset();
      if (test::failed_call().empty()) break;
      EXPECT_TRUE(!went.code || names_file(went)) << went.text;
      ASSERT_NO_FATAL_FAILURE(expect_old_or_new(0, reported)) << test::failed_call() << went.text;
      ASSERT_EQ(open_descriptors(), descriptors) << test::failed_call();
    }
  }
}

// File systems on which a file can have one name only, such as exFAT.
TEST_F(FailingCalls, ToLinkAreFollowedByARenameThatReplacesNothing) {
  static std::string taken;
  taken = path_;
  test::let_files_be_unnamed(false);
  for (const int error_number : {EPERM, EOPNOTSUPP, EMLINK, ENOSYS}) {
    SCOPED_TRACE(error_number);
    prepare(0);
    test::refuse_calls("linkat", error_number);
    const outcome made = outcome_of([&] { container::create(path_); });
    EXPECT_FALSE(made.code) << made.text;
    ASSERT_NO_FATAL_FAILURE(expect_old_or_new(0, true));
    prepare(0);
    test::run_before_calls([](const char* name) {
      if (std::string_view(name) == "renameat2") test::write_file(taken, "another's");
    });
    const outcome late = outcome_of([&] { container::create(path_); });
    test::run_before_calls(nullptr);
    EXPECT_EQ(late.code, errc::already_exists) << late.text;
    EXPECT_EQ(test::read_file(path_), "another's");
    EXPECT_EQ(directory_.names(), std::vector<std::string>{"failing.shale"});
  }
}

// Some sandboxes refuse the call that starts the writing of pages.
TEST_F(FailingCalls, ToWritePagesEarlyLoseNothingIfTheSystemLacksThem) {
  for (const int error_number : {ENOSYS, EPERM}) {
    const std::string path = directory_ / ("early" + std::to_string(error_number) + ".shale");
    const executor small({.threads = 2, .memory_bytes = std::size_t{1} << 20});
    test::refuse_calls("sync_file_range", error_number);
    container file = container::create(path);
    transaction change = file.begin();
    {
      const executor::scope within(small);
      change.create("a", {.dtype = dtype::uint8, .shape = {4 << 20}}).write(expr(7));
    }
    change.commit();
    test::refuse_calls(nullptr);
    EXPECT_GT(small.statistics().windows, 0U);
    EXPECT_EQ(test::findings_of(file), "");
  }
}

TEST_F(FailingCalls, ToPunchHolesAreReplacedByZeros) {
  test::refuse_calls("fallocate", EOPNOTSUPP);
  const std::string path = directory_ / "punched.shale";
  container file = container::create(path);
  const auto commit = [&](auto&& change_something) {
    transaction change = file.begin();
    change_something(change);
    change.commit();
  };
  const array_spec spec{.dtype = dtype::uint8, .shape = {300'000}};
  commit([&](transaction& change) { change.create("old", spec).write(expr(7)); });
  commit([](transaction& change) { change.remove("old"); });
  commit([](transaction&) {});
  const auto bytes_before = std::filesystem::file_size(path);
  commit([&](transaction& change) { change.create("new", spec); });
  test::refuse_calls(nullptr);
  EXPECT_EQ(std::filesystem::file_size(path), bytes_before) << "space was not used again";
  const tensor read = file.latest().at("new").read();
  EXPECT_EQ(std::count(read.data(), read.data() + 300'000, std::byte{0}), 300'000);
  EXPECT_EQ(test::findings_of(file), "");
}

// Kills the process before every call. A reader beside the writer keeps its content.
TEST_F(FailingCalls, ThatAreTheLastLeaveTheOldGenerationOrTheNew) {
  const std::uint64_t stride = run_long() ? 1 : 5;
  for (int step = 0; step <= test::array_steps; ++step) {
    bool done = false;
    for (std::uint64_t call = static_cast<std::uint64_t>(step); !done; call += stride) {
      SCOPED_TRACE("step " + std::to_string(step) + ", call " + std::to_string(call));
      prepare(step);
      std::optional<snapshot> reader;
      if (step > 0) reader = container::open(path_).latest();
      test::child_process writer(SHALE_DYING_PEER,
                                 {path_, std::to_string(step), std::to_string(call)});
      done = writer.read_line() == "done";
      ASSERT_EQ(writer.wait(), done ? 0 : -SIGKILL);
      if (reader) {
        ASSERT_EQ(held_by(*reader), held_after(step - 1));
      }
      reader.reset();
      ASSERT_NO_FATAL_FAILURE(expect_old_or_new(step, done));
    }
  }
}

TEST_F(FailingCalls, OfOperatorNewLeaveWholeContainers) {
  fail_each(failing::allocation, 0, [](const outcome& went, const std::string&) {
    return !went.code || went.code == errc::out_of_memory;
  });
  EXPECT_GT(failures_, 20);
}

// The same for commits that do not wait: calls of the thread that publishes fail, too.
class FailingAsyncCalls : public FailingCalls {
 protected:
  FailingAsyncCalls() { without_waiting_ = true; }

  // The second transaction may find that the first one cannot be published, or, before that is
  // known, that its superblock could not be written.
  static bool tells_of_a_failure(const outcome& went) {
    return went.text.find("a commit before this one failed") != std::string::npos ||
           went.text.find("could not be written to the device") != std::string::npos;
  }
};

TEST_F(FailingAsyncCalls, WithAnIoErrorOnce) {
  fail_each(failing::once, EIO, [&](const outcome& went, const std::string& failed) {
    return !went.code || (went.code == errc::io && names_file(went)) || failed == "mmap";
  });
  EXPECT_GT(failures_, 50);
}

TEST_F(FailingAsyncCalls, WithoutSpaceEverAfter) {
  fail_each(failing::ever_after, ENOSPC, [&](const outcome& went, const std::string&) {
    return !went.code || names_file(went) || went.code == errc::out_of_memory;
  });
  EXPECT_GT(failures_, 50);
}

TEST_F(FailingAsyncCalls, WithoutMemoryOnce) {
  fail_each(failing::once, ENOMEM, [&](const outcome& went, const std::string& failed) {
    return !went.code || went.code == errc::out_of_memory || tells_of_a_failure(went) ||
           failed == "fdatasync" || failed == "fstat" || failed == "getrandom";
  });
  EXPECT_GT(failures_, 20);
}

TEST_F(FailingAsyncCalls, WithAnInterruptionOnceGoWell) {
  fail_each(failing::once, EINTR, [&](const outcome& went, const std::string& failed) {
    for (const char* const repeated : {"pread", "pwrite", "openat", "fallocate", "posix_fallocate"})
      if (failed == repeated) return !went.code.has_value();
    return !went.code || went.code == errc::io || failed == "mmap";
  });
}

TEST_F(FailingAsyncCalls, WithAShortTransferOnceGoWell) {
  fail_each(failing::partially, 0,
            [&](const outcome& went, const std::string&) { return !went.code; });
}

TEST_F(FailingAsyncCalls, OfOperatorNewLeaveWholeContainers) {
  fail_each(failing::allocation, 0, [](const outcome& went, const std::string&) {
    return !went.code || went.code == errc::out_of_memory || tells_of_a_failure(went);
  });
  EXPECT_GT(failures_, 20);
}

// Kills the process before every call, of all of its threads.
TEST_F(FailingAsyncCalls, ThatAreTheLastLeaveGenerationsInOrder) {
  const std::uint64_t stride = run_long() ? 1 : 5;
  for (int step = 1; step <= test::array_steps; ++step) {
    bool done = false;
    for (std::uint64_t call = static_cast<std::uint64_t>(step); !done; call += stride) {
      SCOPED_TRACE("step " + std::to_string(step) + ", call " + std::to_string(call));
      prepare(step);
      test::child_process writer(
          SHALE_DYING_PEER, {path_, std::to_string(step), std::to_string(call), "without waiting"});
      done = writer.read_line() == "done";
      const int status = writer.wait();
      ASSERT_TRUE(status == -SIGKILL || (done && status == 0)) << status;
      ASSERT_NO_FATAL_FAILURE(expect_old_or_new(step, done));
    }
  }
}

// A commit after an earlier error is refused, or gives a sound generation.
TEST_F(FailingCalls, OfOperatorNewAndACommitAllTheSame) {
  int refused = 0;
  for (int step = 1; step <= test::array_steps; ++step) {
    for (std::uint64_t call = 0;; ++call) {
      SCOPED_TRACE("step " + std::to_string(step) + ", allocation " + std::to_string(call));
      prepare(step);
      container file = container::open(path_, open_mode::write);
      {
        transaction change = file.begin();
        test::fail_calls(failing::allocation, call);
        const outcome went = outcome_of([&] { test::tell_step(step, change); });
        test::stop_failing();
        if (test::failed_call().empty()) break;
        const outcome end = outcome_of([&] { change.commit(); });
        ASSERT_TRUE(!end.code || end.code == errc::io || end.code == errc::out_of_memory)
            << end.text;
        refused += end.code.has_value();
        if (!went.code && !end.code) {
          ASSERT_EQ(held_by(file.latest()), held_after(step));
        }
      }
      ASSERT_EQ(test::findings_of(file), "");
      held_by(file.latest());
      ASSERT_NO_FATAL_FAILURE(expect_to_go_on(file));
    }
  }
  EXPECT_GT(refused, 10);
}

// A caller that makes the changes again after a failed commit must know that they may exist
// already.
TEST_F(FailingCalls, ToSyncTheSuperblockSayThatTheGenerationMayExist) {
  int published = 0;
  for (std::uint64_t call = 0;; ++call) {
    SCOPED_TRACE("call " + std::to_string(call));
    prepare(test::array_steps);
    container file = container::open(path_, open_mode::write);
    const std::uint64_t before = file.latest().generation();
    transaction change = file.begin();
    change.create("more", {.dtype = dtype::float32, .shape = {100}}).write(expr(9));
    test::fail_calls(failing::once, call, EIO);
    const outcome went = outcome_of([&] { change.commit(); });
    test::stop_failing();
    if (test::failed_call().empty()) break;
    const bool told = went.text.find("generation " + std::to_string(before + 1) +
                                     " may exist all the same") != std::string::npos;
    const bool exists = container::open(path_).latest().generation() > before;
    if (test::failed_call() != "fdatasync") continue;
    EXPECT_EQ(told, exists) << went.text;
    published += exists;
  }
  EXPECT_EQ(published, 1);
}

// A change of an array in a transaction, which fails for want of memory.
struct failing_change {
  const char* description;
  bool updated;  // whether the transaction has updated the array before
  void (*make)(transaction& change, const std::string& name);
};

const failing_change failing_changes[] = {
    {"update", false, [](transaction& change, const std::string& name) { change.update(name); }},
    {"remove", true, [](transaction& change, const std::string& name) { change.remove(name); }},
    // The new name is too long to be kept without an allocation.
    {"rename", true,
     [](transaction& change, const std::string& name) {
       change.rename(name, std::string(100, 'n'));
     }},
};

// Makes the change fail at an allocation. Then the array takes values and they are committed,
// unless the commit says what has failed. Returns false if the change made fewer allocations.
bool goes_on_after(const failing_change& failed, const std::string& path, const std::string& name,
                   std::uint64_t allocation, int& committed) {
  const tensor wanted = test::counting({300}, dtype::float32);
  container file = container::open(path, open_mode::write);
  transaction change = file.begin();
  std::optional<writable_array> array;
  if (failed.updated) array = change.update(name);
  if (failed.updated && name == "dense") array->map();
  test::fail_calls(failing::allocation, allocation);
  const outcome went = outcome_of([&] { failed.make(change, name); });
  test::stop_failing();
  if (test::failed_call().empty()) return false;
  if (!went.code) return true;
  EXPECT_EQ(went.code, errc::out_of_memory) << went.text;
  const outcome end = outcome_of([&] {
    if (!array) array = change.update(name);
    array->write(wanted);
    change.commit();
  });
  if (end.code) {
    EXPECT_EQ(end.code, errc::out_of_memory) << end.text;
    EXPECT_NE(end.text.find("one of its changes or writes has failed"), std::string::npos)
        << end.text;
    return true;
  }
  ++committed;
  EXPECT_TRUE(equal_bits(file.latest().at(name).read(), wanted));
  EXPECT_EQ(test::findings_of(file), "");
  return true;
}

TEST(ChangesWithoutMemory, LeaveTheirArrayAsItWasOrRefuseToBeCommitted) {
  const test::scratch_directory directory;
  const std::string path = directory / "a.shale";
  {
    container file = container::create(path);
    transaction change = file.begin();
    for (const array_kind kind : {array_kind::dense, array_kind::chunked})
      change
          .create(kind == array_kind::dense ? "dense" : "chunked",
                  {.dtype = dtype::float32, .shape = {300}, .kind = kind})
          .write(expr(2));
    change.commit();
  }
  for (const failing_change& failed : failing_changes)
    for (const std::string name : {"dense", "chunked"}) {
      int committed = 0;
      for (std::uint64_t call = 0;; ++call) {
        SCOPED_TRACE(failed.description + (" " + name) + ", allocation " + std::to_string(call));
        if (!goes_on_after(failed, path, name, call, committed)) break;
      }
      EXPECT_GT(committed, 0);
    }
}

// File systems and kernels that know no locks of open file descriptions answer like this.
TEST_F(FailingCalls, OfLocksLeaveNoNewContainer) {
  for (const int number : {EINVAL, ENOLCK, EOPNOTSUPP, ENOSYS}) {
    std::filesystem::remove(path_);
    test::refuse_calls("fcntl", number);
    const outcome went = outcome_of([&] { container::create(path_); });
    test::refuse_calls(nullptr);
    EXPECT_EQ(went.code, errc::unsupported) << went.text;
    EXPECT_EQ(directory_.names(), std::vector<std::string>{});
  }
}

// The first container that a process opens creates everything that a process creates only once.
TEST(FirstContainer, MayFindNoMemory) {
  for (std::uint64_t call = 0; call < 8; ++call)
    test::expect_to_end([call] {
      const test::scratch_directory folder;
      const std::string path = folder / "first.shale";
      test::fail_calls(failing::allocation, call);
      try {
        container::create(path);
      } catch (const error& failure) {
        EXPECT_EQ(failure.code(), errc::out_of_memory) << failure.what();
      }
      test::stop_failing();
      EXPECT_EQ(test::failed_call(), "operator new");
      EXPECT_EQ(container::create(folder / "second.shale").latest().generation(), 1U);
    });
}

}  // namespace
}  // namespace shale
