// Lets other processes and threads act between two calls that a container makes to the operating
// system: files are truncated, copied over or renamed, and other writers commit.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "array/test_support.hpp"
#include "format/container/container_file.hpp"
#include "shale/executor.hpp"
#include "storage/pool/pools/housekeeper.hpp"
#include "support/bounded.hpp"
#include "support/child_threads.hpp"
#include "support/failing_calls.hpp"
#include "support/fork_elsewhere.hpp"
#include "support/process_footprint.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

// commit.3: if a mapping loses bytes while the data is synced, this is noticed before the
// superblock is written.
class LostMapping : public testing::Test {
 protected:
  // Before a commit's first sync, the file is truncated for a moment, and a load through the
  // mapping faults.
  static void lose(const char* call) {
    if (std::string(call) != "fdatasync") return;
    test::run_before_calls(nullptr);
    const auto bytes = static_cast<off_t>(std::filesystem::file_size(path_));
    ASSERT_EQ(::truncate(path_.c_str(), bytes - (3 << 20)), 0);
    volatile std::byte seen = lost_->data()[(2 << 20) + 5];
    (void)seen;
    ASSERT_EQ(::truncate(path_.c_str(), bytes), 0);
  }

  static inline std::string path_;
  static inline const tensor* lost_ = nullptr;
  test::scratch_directory directory_;
};

TEST_F(LostMapping, DuringTheSyncIsNotCommitted) {
  path_ = directory_ / "lost.shale";
  container file = container::create(path_);
  transaction change = file.begin();
  const writable_array made = change.create("a", {.dtype = dtype::float32, .shape = {1 << 20}});
  made.write(expr(3));
  const tensor mapped = made.map();
  lost_ = &mapped;
  test::run_before_calls(&LostMapping::lose);
  EXPECT_EQ(test::code_of([&] { change.commit(); }), errc::io);
  EXPECT_FALSE(file.latest().find("a"));
  EXPECT_EQ(test::findings_of(file), "");
}

// Runs a function of the test between the calls of a container.
class BetweenCalls : public testing::Test {
 protected:
  BetweenCalls() { caller_ = std::this_thread::get_id(); }
  ~BetweenCalls() override { stop_watching(); }

  // `body` gets the name of each call of this thread that comes after that many more syncs, before
  // the call is made. Its own calls do not count.
  static void watch_after(int syncs, std::function<void(std::string_view call)> body) {
    syncs_ = syncs;
    body_ = std::move(body);
    test::run_before_calls([](const char* call) {
      if (std::this_thread::get_id() != caller_ || std::exchange(inside_, true)) return;
      if (syncs_ == 0) body_(call);
      else if (std::string_view(call) == "fdatasync") --syncs_;
      inside_ = false;
    });
  }

  static void stop_watching() {
    test::run_before_calls(nullptr);
    test::refuse_calls(nullptr);
  }

  static inline std::thread::id caller_;
  static inline int syncs_ = 0;
  static inline bool inside_ = false;
  static inline std::function<void(std::string_view)> body_;
  test::scratch_directory directory_;
  const std::string path_ = directory_ / "watched.shale";
};

constexpr int syncs_of_begin = 1;
constexpr int syncs_of_commit = 2;

// change.4: whoever has the writer lock next may use the space of a transaction that has ended.
class LateMapping : public BetweenCalls {
 protected:
  static tensor mapped_in(transaction& change) {
    return change.create("a", {.dtype = dtype::float32, .shape = {1 << 20}}).map();
  }
};

TEST_F(LateMapping, IsDetachedBeforeAFailedCommitReleasesTheLock) {
  container file = container::create(path_);
  transaction change = file.begin();
  const tensor mapped = mapped_in(change);
  int releases = 0, attached = 0;
  watch_after(1, [&](std::string_view call) {
    if (call != "fcntl" && call != "ftruncate") return;
    ++releases;
    attached += !mapped.storage().failed();
  });
  test::refuse_calls("fdatasync", EIO);
  const errc code = test::code_of([&] { change.commit(); });
  stop_watching();
  EXPECT_EQ(code, errc::io);
  EXPECT_GT(releases, 0);
  EXPECT_EQ(attached, 0);
}

TEST_F(LateMapping, IsDetachedBeforeAReplacementReleasesTheLock) {
  const std::string other = directory_ / "other.shale";
  container::create(other);
  container file = container::create(path_);
  transaction change = file.begin();
  const tensor mapped = mapped_in(change);
  int renamed = 0, attached = 0;
  watch_after(0, [&](std::string_view call) {
    if (call != "renameat") return;
    ++renamed;
    attached += !mapped.storage().failed();
  });
  change.replace_by(other);
  stop_watching();
  EXPECT_EQ(renamed, 1);
  EXPECT_EQ(attached, 0);
}

// XFS, once it could not write its log: the new name is lost, the sync of its folder answers
// success, and every later call fails.
class ShutDownFileSystem : public BetweenCalls {};

TEST_F(ShutDownFileSystem, MakesNoNameDurable) {
  const std::string other = directory_ / "other.shale";
  container::create(other);
  container file = container::create(path_);
  transaction change = file.begin();
  int syncs = 0;
  watch_after(0, [&](std::string_view call) {
    if (call != "fsync") return;
    ++syncs;
    test::fail_calls(test::failing::ever_after, 1, EIO);  // call 0 is this sync
  });
  const test::outcome went = test::outcome_of([&] { change.replace_by(other); });
  test::stop_failing();
  stop_watching();
  EXPECT_EQ(syncs, 1);
  EXPECT_EQ(went.code, errc::io) << went.text;
  EXPECT_NE(went.text.find(path_), std::string::npos) << went.text;
}

// Whether a thread of this process sleeps, as one does that waits for another thread.
bool sleeps(pid_t thread) {
  std::ifstream about("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(about, text);
  return text.find(") S ") != std::string::npos;
}

// update.2: while a thread copies a unit, another one writes to it. It has to wait for the copy,
// which would replace its elements.
class SharedUnit : public BetweenCalls {};

TEST_F(SharedUnit, IsCopiedOnceIfTwoThreadsWriteToIt) {
  container file = container::create(path_);
  {
    transaction made = file.begin();
    made.create("a", expr(tensor::zeros({1 << 19}, dtype::float32)));
    made.commit();
  }
  transaction change = file.begin();
  const writable_array a = change.update("a");
  std::atomic<pid_t> number = 0;
  std::atomic<bool> done = false;
  std::jthread other;
  const auto write_alone = [&](index_t first, float value) {
    executor alone({.threads = 1});
    const executor::scope within(alone);
    a.write({{first}, {8}}, expr(value));
  };
  watch_after(0, [&](std::string_view call) {
    if (call != "pwrite" || other.joinable()) return;
    other = std::jthread([&] {
      number = ::gettid();
      write_alone(0, 1);
      done = true;
    });
    for (int asleep = 0; !done && asleep < 50;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      asleep = number != 0 && sleeps(number) ? asleep + 1 : 0;
    }
  });
  write_alone(8, 2);
  stop_watching();
  ASSERT_TRUE(other.joinable());
  other.join();
  change.commit();
  const tensor stored = file.latest().at("a").read();
  const auto found = stored.elements<float>();
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_EQ(found[i], i < 8 ? 1 : i < 16 ? 2 : 0) << i;
}

class AsyncCommit : public BetweenCalls {
 protected:
  ~AsyncCommit() override { let_publish(); }

  static inline std::atomic<bool> overlaps_ = false;  // another thread has synced meanwhile

  // The thread that publishes stops before its next sync.
  static void hold_publisher() {
    overlaps_ = false;
    held_ = hold::asked;
    test::run_before_calls([](const char* call) {
      if (std::this_thread::get_id() == caller_ || std::string_view(call) != "fdatasync") return;
      hold now = hold::asked;
      if (!held_.compare_exchange_strong(now, hold::stopped)) {
        overlaps_ = overlaps_ || now == hold::stopped;
        return;
      }
      held_.notify_all();
      held_.wait(hold::stopped);
    });
  }

  static void wait_until_held() { held_.wait(hold::asked); }

  // Returns once the thread has slept for many looks, or has synced beside the one that is held.
  static void wait_until_asleep(int thread) {
    const std::string path = "/proc/self/task/" + std::to_string(thread) + "/stat";
    for (int looks = 0; looks < 1000 && !overlaps_;) {
      std::string line;
      std::getline(std::ifstream(path), line);
      looks = line.find(") S ") != line.npos ? looks + 1 : 0;
      std::this_thread::yield();
    }
  }

  static void let_publish() {
    held_ = hold::no;
    held_.notify_all();
  }

  // Commits an empty array without waiting.
  static pending_commit add(container& file, const std::string& name) {
    transaction change = file.begin();
    change.create(name, {.dtype = dtype::int32, .shape = {6}, .kind = array_kind::chunked});
    return change.commit_async();
  }

  // The work of a child that is forked while a commit of its parent is under way. It tells through
  // `says` when the parent may publish. Returns a number for each thing that may go wrong.
  static int write_beside(container& file, const pending_commit& of_parent, int says) {
    if (test::code_of([&] { of_parent.wait(); }) != errc::invalid_argument) return 2;
    if (of_parent.durable()) return 3;
    if (test::code_of([&] { file.begin(no_wait); }) != errc::busy) return 4;
    if (::write(says, "x", 1) != 1) return 5;
    transaction change = file.begin({10'000});
    if (!change.find("a")) return 6;
    change.create("b", {.dtype = dtype::int32, .shape = {6}, .kind = array_kind::chunked});
    if (test::children_start_threads) change.commit_async().wait();
    else change.commit();
    return file.latest().find("b") ? 0 : 7;
  }

 private:
  enum class hold : std::uint32_t { no, asked, stopped };
  static inline std::atomic<hold> held_ = hold::no;
};

// pipeline.3: a commit that waits publishes by itself, after what was committed before.
TEST_F(AsyncCommit, IsPublishedBeforeACommitThatWaits) {
  const test::hang_alarm limit;
  container file = container::create(path_);
  hold_publisher();
  const pending_commit pending = add(file, "a");
  wait_until_held();
  std::atomic<int> commits = 0;  // the thread that commits, once it does
  std::thread committer([&] {
    transaction change = file.begin();
    change.create("d", {.dtype = dtype::int32, .shape = {6}}).write(expr(2));
    commits = ::gettid();
    commits.notify_all();
    change.commit();
    EXPECT_TRUE(pending.durable());
  });
  commits.wait(0);
  wait_until_asleep(commits);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(container::open(path_).latest().names().empty());
  EXPECT_FALSE(overlaps_);
  let_publish();
  committer.join();
  EXPECT_EQ(file.latest().generation(), 3u);
  EXPECT_EQ(file.latest().at("d").read().at({5}), scalar(2));
  EXPECT_EQ(test::findings_of(file), "");
}

// pipeline.4: the child has no thread that publishes for its parent, and no lock of it.
TEST_F(AsyncCommit, LeavesAForkedChildToWriteByItself) {
  const test::hang_alarm limit;
  container file = container::create(path_);
  hold_publisher();
  const pending_commit pending = add(file, "a");
  wait_until_held();
  int told[2];
  ASSERT_EQ(::pipe2(told, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    test::start_no_housekeeper();
    const test::hang_alarm limit_of_child;
    int status = 1;
    try {
      status = write_beside(file, pending, told[1]);
    } catch (const error&) {
    }
    ::_exit(status);
  }
  ASSERT_GT(child, 0);
  ::close(told[1]);
  char byte = 0;
  EXPECT_EQ(::read(told[0], &byte, 1), 1);
  ::close(told[0]);
  let_publish();
  pending.wait();
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
  add(file, "c").wait();
  EXPECT_EQ(file.latest().names(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(test::findings_of(file), "");
}

// The caller copies what readers see before the commit is published.
TEST_F(AsyncCommit, IsNotLostByAReplacement) {
  const test::hang_alarm limit;
  const std::string copy = directory_ / "copy.shale";
  container::create(copy);
  container file = container::create(path_);
  hold_publisher();
  const pending_commit pending = add(file, "a");
  wait_until_held();
  transaction change = file.begin();
  EXPECT_TRUE(file.latest().names().empty());
  let_publish();
  EXPECT_EQ(test::code_of([&] { change.replace_by(copy); }), errc::busy);
  EXPECT_TRUE(pending.durable());
  EXPECT_TRUE(container::open(path_).latest().find("a"));
  file.begin().replace_by(copy);
  EXPECT_FALSE(container::open(path_).latest().find("a"));
}

// A thread that waits for the next transaction finds that the one before cannot be published.
TEST_F(AsyncCommit, StopsATransactionThatGoesOnWhenItFails) {
  const test::hang_alarm limit;
  container file = container::create(path_);
  hold_publisher();
  const pending_commit pending = add(file, "a");
  wait_until_held();
  transaction change = file.begin();
  EXPECT_TRUE(change.find("a"));
  test::refuse_calls("fdatasync", EIO);
  let_publish();
  EXPECT_EQ(test::code_of([&] { pending.wait(); }), errc::io);
  test::refuse_calls(nullptr);
  EXPECT_EQ(test::code_of([&] { change.commit(); }), errc::io);
  EXPECT_EQ(test::code_of([&] { file.begin(); }), errc::io);
  container again = container::open(path_, open_mode::write);
  EXPECT_EQ(again.begin().generation(), 2u);
  EXPECT_TRUE(again.latest().names().empty());
}

// It may write many pages of metadata.
TEST_F(AsyncCommit, IsNotWaitedForByForks) {
  const test::hang_alarm limit;
  container file = container::create(path_);
  transaction change = file.begin();
  change.create("a", {.dtype = dtype::float32, .shape = {100}, .kind = array_kind::chunked})
      .write(expr(3));
  bool forked = false;
  watch_after(0, [&](std::string_view call) {
    if (call == "pwrite" && !forked) forked = test::forks_elsewhere();
  });
  const pending_commit pending = change.commit_async();
  stop_watching();
  EXPECT_TRUE(forked);
  pending.wait();
  EXPECT_EQ(file.latest().at("a").read().at({99}), scalar(3));
}

// pipeline.6: many commits may wait for a slow device.
TEST_F(AsyncCommit, KeepsNoMapping) {
  const test::hang_alarm limit;
  container file = container::create(path_);
  hold_publisher();
  add(file, "a");
  wait_until_held();
  const std::size_t before = test::mappings_of(path_);
  transaction change = file.begin();
  for (const char* name : {"d", "e"}) {
    const writable_array made = change.create(name, {.dtype = dtype::uint8, .shape = {3 << 20}});
    made.write(expr(1));
    made.map();
  }
  EXPECT_GT(test::mappings_of(path_), before);
  const pending_commit pending = change.commit_async();
  EXPECT_EQ(test::mappings_of(path_), before);
  let_publish();
  pending.wait();
  EXPECT_EQ(file.latest().at("e").read().at({(3 << 20) - 1}), scalar(1));
  EXPECT_EQ(test::findings_of(file), "");
}

class KeptMapping : public BetweenCalls {
 protected:
  // A tensor of a new array, with elements.
  tensor filled(transaction& change) const {
    const writable_array made = change.create("a", {.dtype = dtype::float32, .shape = {5000}});
    made.write(values_);
    return made.map();
  }

  const tensor values_ = test::counting({5000}, dtype::float32);
};

// change.4: another writer waits for its turn, and changes the array.
TEST_F(KeptMapping, SurvivesTheNextWriter) {
  container file = container::create(path_);
  container other = container::open(path_, open_mode::write);
  int commits = 0;
  const auto change_array = [&] {
    return test::code_of([&] {
      transaction next = other.begin(no_wait);
      next.update("a").write(expr(-1 - commits));
      next.commit();
      ++commits;
    });
  };
  transaction change = file.begin();
  const tensor mapped = filled(change);
  int attempts = 0;
  watch_after(syncs_of_commit, [&](std::string_view call) {
    if (call != "fstatat" || commits > 0) return;
    ++attempts;
    const errc code = change_array();
    EXPECT_TRUE(code == errc{} || code == errc::busy);
  });
  change.commit();
  stop_watching();
  EXPECT_GT(attempts, 0);
  // Without the pin, these would use the space of the mapping again.
  while (commits < 5) ASSERT_EQ(change_array(), errc{});
  EXPECT_FALSE(mapped.storage().failed());
  EXPECT_TRUE(equal_bits(mapped, values_));
  EXPECT_EQ(test::findings_of(file), "");
}

// The commit is durable by then, so it succeeds all the same.
TEST_F(KeptMapping, IsGivenUpIfNoPinCanBeTaken) {
  container file = container::create(path_);
  transaction change = file.begin();
  const tensor mapped = filled(change);
  watch_after(syncs_of_commit, [](std::string_view) { test::refuse_calls("openat", EIO); });
  const std::string failed = test::text_of([&] { change.commit(); });
  stop_watching();
  EXPECT_EQ(failed, "");
  EXPECT_TRUE(mapped.storage().failed());
  EXPECT_EQ(test::code_of([&] { mapped.storage().check(); }), errc::io);
  EXPECT_TRUE(equal_bits(file.latest().at("a").read(), values_));
}

// The other file has the same array at the same place.
TEST_F(KeptMapping, PinsNoGenerationOfAnotherFile) {
  const std::string twin = directory_ / "twin.shale";
  container::create(path_);
  std::filesystem::copy_file(path_, twin);
  {
    container file = container::open(twin, open_mode::write);
    transaction change = file.begin();
    filled(change);
    change.commit();
  }
  container file = container::open(path_, open_mode::write);
  transaction change = file.begin();
  const tensor mapped = filled(change);
  bool moved = false;
  watch_after(syncs_of_commit, [&](std::string_view call) {
    if (call == "fstatat" && !std::exchange(moved, true)) std::filesystem::rename(twin, path_);
  });
  const errc code = test::code_of([&] { change.commit(); });
  stop_watching();
  EXPECT_TRUE(moved);
  EXPECT_EQ(code, errc::io);
  EXPECT_TRUE(mapped.storage().failed());
}

class ContainerThatMoves : public BetweenCalls {};

// A copy of the container takes the name when a transaction already has the writer lock, but has
// not opened its base generation.
TEST_F(ContainerThatMoves, IsFollowedByATransactionThatBegins) {
  const std::string copied = directory_ / "copied.shale";
  for (const bool older : {false, true}) {
    std::filesystem::remove(path_);
    container file = container::create(path_);
    // Not by `file`: it would know that the superblocks are durable, and begin without a sync.
    const auto commit = [&](double value) {
      transaction change = container::open(path_, open_mode::write).begin();
      if (!change.find("a")) change.create("a", {.dtype = dtype::float32, .shape = {100}});
      change.update("a").write(expr(value));
      change.commit();
    };
    commit(2);
    if (older) std::filesystem::copy_file(path_, copied);
    commit(3);
    if (!older) std::filesystem::copy_file(path_, copied);
    const int base = older ? 2 : 3;
    bool moved = false;
    watch_after(syncs_of_begin, [&](std::string_view call) {
      if (call == "openat" && !std::exchange(moved, true)) std::filesystem::rename(copied, path_);
    });
    transaction change = file.begin();
    stop_watching();
    EXPECT_TRUE(moved);
    EXPECT_EQ(change.generation(), static_cast<std::uint64_t>(base) + 1);
    EXPECT_EQ(change.find("a")->read().at({99}), scalar(base));
    change.update("a").write({{0}, {1}}, tensor::of(std::initializer_list<int>{7}));
    EXPECT_EQ(test::text_of([&] { change.commit(); }), "");
    const tensor stored = container::open(path_).latest().at("a").read();
    EXPECT_EQ(stored.at({0}), scalar(7));
    EXPECT_EQ(stored.at({99}), scalar(base));
    EXPECT_EQ(test::findings_of(file), "");
  }
}

// Reads of a dense array of four whole segments.
class DenseReading : public BetweenCalls {
 protected:
  DenseReading() {
    transaction change = file_.begin();
    change.create("a", {.dtype = dtype::float32, .shape = {4 * segment}}).write(expr(values_));
    change.commit();
  }

  // Uses the array, while another thread forks before the first call of that name.
  void use_and_fork_before(std::string_view name, const std::function<tensor(const array&)>& use) {
    const test::hang_alarm limit;
    const array stored = file_.latest().at("a");
    bool forked = false;
    watch_after(0, [&](std::string_view call) {
      if (call == name && !forked) forked = test::forks_elsewhere();
    });
    const tensor read = use(stored);
    stop_watching();
    EXPECT_TRUE(forked);
    EXPECT_TRUE(equal_bits(read, values_));
  }

  static constexpr index_t segment = index_t{1} << 18;  // elements
  const tensor values_ = test::seeded({4 * segment}, 5);
  container file_ = container::create(path_);
};

// The system may read all elements then, or all checksums.
TEST_F(DenseReading, IsNotWaitedForByForks) {
  use_and_fork_before("fstatfs", [](const array& stored) { return stored.map(); });
  use_and_fork_before("pread", [](const array& stored) { return stored.read(); });
}

TEST_F(DenseReading, OfAllPartsLoadsTheChecksumsOnce) {
  const array stored = file_.latest().at("a");
  static std::atomic<int> reads;
  reads = 0;  // also if the test is repeated
  test::run_before_calls([](const char* call) {
    if (std::string_view(call) == "pread") ++reads;
  });
  for (index_t part = 0; part < 4; ++part) {
    const tensor read = stored.read({{part * segment}, {segment}});
    EXPECT_TRUE(equal_bits(read, values_.narrow(0, part * segment, segment)));
  }
  stop_watching();
  EXPECT_EQ(reads.load(), 4 + 1);
}

class FailedSpace : public testing::Test {
 protected:
  ~FailedSpace() override {
    test::run_before_calls(nullptr);
    test::refuse_calls(nullptr);
  }

  // Runs before the failing call, like a write of another thread at that moment.
  static inline std::function<void()> in_the_middle_;
  test::scratch_directory directory_;
};

TEST_F(FailedSpace, LeavesTheChunksThatAreWrittenMeanwhile) {
  format::container_file file =
      format::container_file::create(format::posix_files(), directory_ / "a.shale");
  format::transaction change = file.begin(std::chrono::milliseconds{0});
  const std::vector<std::byte> written(4096, std::byte{7});
  const format::extent chunk = change.allocate_chunk(written.size());
  in_the_middle_ = [&] { change.write(chunk.offset, written); };
  test::run_before_calls([](const char* name) {
    if (std::string_view(name) != "posix_fallocate") return;
    if (const auto run = std::exchange(in_the_middle_, nullptr)) run();
  });
  test::refuse_calls("posix_fallocate", ENOSPC);
  EXPECT_EQ(test::code_of([&] { change.allocate(1 << 20); }), errc::out_of_space);
  EXPECT_FALSE(in_the_middle_);
  std::vector<std::byte> read(written.size());
  change.read(chunk.offset, read);
  EXPECT_EQ(read, written);
}

}  // namespace
}  // namespace shale
