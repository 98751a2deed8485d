// Tests every crash, every failing call and many interleavings of a small history, on recorded
// files.

#include <gtest/gtest.h>

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

#include "format/after_crash.hpp"
#include "format/bytes/byte_order.hpp"
#include "format/generations/generation_state.hpp"
#include "format/os/pins.hpp"
#include "format/pages/header.hpp"
#include "format/recorded_container.hpp"
#include "format/small_history.hpp"
#include "shale/error.hpp"
#include "support/failures.hpp"
#include "support/recording_file_system.hpp"

namespace shale::format {
namespace {

using test::fault;
using test::look;
using test::observe;
using test::plain_state;
using test::recording_file_system;
using test::sighting;

constexpr std::chrono::milliseconds at_once{0};
const std::string path = "/box/history.shale";

// A generation of the history, and the range of recorded changes that its commit made.
struct told_generation {
  plain_state state;
  std::size_t began = 0;      // changes recorded when its commit began
  std::size_t published = 0;  // when commit had returned
};

// Runs the whole history; stops at the first error.
struct telling {
  std::vector<told_generation> generations;  // [0] is generation 1, empty
  std::optional<errc> stopped_by;
  bool in_commit = false;  // commit or create threw the error
  plain_state attempted;   // the state that was being committed then

  void run(recording_file_system& files, int steps = test::history_steps) {
    try {
      in_commit = true;
      std::size_t began = files.changes();
      container_file container = container_file::create(files, path, {.id = uuid{}});
      generations.push_back({{}, began, files.changes()});
      for (int step = 0; step < steps; ++step) {
        in_commit = false;
        attempted = generations.back().state;
        began = files.changes();
        transaction change = container.begin(at_once);
        test::tell(step, {change, attempted});
        in_commit = true;
        change.commit();
        generations.push_back({attempted, began, files.changes()});
      }
    } catch (const error& failure) {
      stopped_by = failure.code();
    }
  }
};

// After a crash that follows `count` changes, a reader may see the last generation that was
// reported by then, or the one that was being committed.
void expect_old_or_new(const telling& history, std::size_t count,
                       const recording_file_system::image& image) {
  std::size_t reported = 0;  // generations that had been reported
  while (reported < history.generations.size() && history.generations[reported].published <= count)
    ++reported;
  const sighting seen = look(image, path);
  ASSERT_GE(seen.generation, reported) << "after " << count << " changes";
  ASSERT_LE(seen.generation, reported + 1) << "after " << count << " changes";
  if (seen.generation == 0 || seen.generation > history.generations.size()) return;
  ASSERT_EQ(seen.state, history.generations[seen.generation - 1].state)
      << "after " << count << " changes";
}

TEST(Commit, RunsTheHistoryWithoutACrash) {
  recording_file_system files;
  telling history;
  history.run(files);
  ASSERT_FALSE(history.stopped_by);
  const sighting seen = look(files.now(), path);
  EXPECT_EQ(seen.generation, static_cast<std::uint64_t>(test::history_steps) + 1);
  EXPECT_EQ(seen.state, history.generations.back().state);
}

TEST(Commit, SurvivesDeathAfterEveryChange) {
  recording_file_system files;
  telling history;
  history.run(files);
  recording_file_system::replay crash(files);
  do expect_old_or_new(history, crash.count(), crash.after_kill());
  while (crash.next());
}

TEST(Commit, SurvivesLossOfEverythingUnsynced) {
  recording_file_system files;
  telling history;
  history.run(files);
  recording_file_system::replay crash(files);
  do expect_old_or_new(history, crash.count(), crash.after_power_cut(nullptr));
  while (crash.next());
}

TEST(Commit, SurvivesLossOfAnyUnsyncedSubset) {
  recording_file_system files;
  telling history;
  history.run(files);
  std::mt19937_64 random(20240229);
  recording_file_system::replay crash(files);
  do
    for (int sample = 0; sample < 3; ++sample)
      expect_old_or_new(history, crash.count(), crash.after_power_cut(&random));
  while (crash.next());
}

// commit.5: an announced generation exists after a power cut.
TEST(Commit, AnnouncesOnlyWhatIsDurable) {
  recording_file_system files;
  telling history;
  history.run(files);
  recording_file_system::replay crash(files);
  std::uint32_t announced = 0;
  do {
    const auto seen = crash.after_kill();
    const auto found = seen.find(path);
    if (found == seen.end() || found->second.size() < live_page_offset + 4) continue;
    announced = load<std::uint32_t>(found->second.data() + live_page_offset);
    if (announced < 2) continue;  // the state after `create`
    ASSERT_GE(look(crash.after_power_cut(nullptr), path).generation, announced);
  } while (crash.next());
  EXPECT_EQ(announced, history.generations.size());
}

// A waiter that was woken finds the new generation, even if a crash follows.
TEST(Commit, WakesWaitersOnceItIsDurable) {
  recording_file_system files;
  telling history;
  history.run(files);
  ASSERT_EQ(files.wakes().size(), history.generations.size());
  recording_file_system::replay crash(files);
  for (std::size_t i = 0; i < files.wakes().size(); ++i) {
    while (crash.count() < files.wakes()[i]) crash.next();
    if (i == 0) continue;  // this sync belongs to a file that has no name yet
    EXPECT_GE(look(crash.after_power_cut(nullptr), path).generation, i + 1);
  }
}

// Every write is split in two, so that a reader can meet a half-written superblock.
TEST(Commit, SurvivesDeathInTheMiddleOfAnyWrite) {
  recording_file_system files;
  files.fail_call(0, fault::partial, 0, true);
  telling history;
  history.run(files);
  ASSERT_FALSE(history.stopped_by);
  std::mt19937_64 random(11);
  recording_file_system::replay crash(files);
  do {
    expect_old_or_new(history, crash.count(), crash.after_kill());
    expect_old_or_new(history, crash.count(), crash.after_power_cut(&random));
  } while (crash.next());
}

// A writer makes changes, and its commit fails: the sync after `good_syncs` more does.
void fail_a_commit(recording_file_system& files, int good_syncs,
                   const std::function<void(transaction&)>& make_changes) {
  container_file writer = container_file::open(files, path, open_access::write);
  transaction change = writer.begin(at_once);
  make_changes(change);
  files.fail_sync(good_syncs);
  EXPECT_EQ(test::code_of([&] { change.commit(); }), errc::io);
  files.fail_sync(1'000'000);
}

// commit.1: the superblock of the base may not have reached the device. It must be there before the
// writer writes the other slot. This writer dies in the middle of that write.
TEST(Commit, SurvivesDeathAfterAFailedSync) {
  std::mt19937_64 random(5);
  bool more = true;
  for (std::uint64_t death = 0; more; ++death) {
    recording_file_system files;
    telling history;
    history.run(files, 1);
    plain_state state = history.generations.back().state;
    // The sync of the data works.
    fail_a_commit(files, 1, [&](transaction& change) { test::tell(1, {change, state}); });
    {
      container_file writer = container_file::open(files, path, open_access::write);
      const std::uint64_t start = files.calls();
      files.fail_call(start + death, fault::death);
      more = test::code_of([&] { test::commit_step(writer, 2, state); }) != errc{};
    }
    for (int sample = 0; sample < 8; ++sample)
      ASSERT_GE(look(files.after_power_cut(&random), path).generation, 2u) << "call " << death;
  }
}

// ext4 keeps the pages that a failed writer left, and never writes them as they have to be.
TEST(Commit, SurvivesPagesThatAFailedWriterLeft) {
  recording_file_system files;
  telling history;
  history.run(files, 2);
  plain_state state = history.generations.back().state;
  fail_a_commit(files, 0, [lost = state](transaction& change) mutable {
    for (int step = 2; step < 5; ++step) test::tell(step, {change, lost});
  });
  container_file writer = container_file::open(files, path, open_access::write);
  for (int step = 2; step < 7; ++step) {
    test::commit_step(writer, step, state);
    const sighting seen = look(files.after_power_cut(nullptr), path);
    EXPECT_EQ(seen.generation, static_cast<std::uint64_t>(step) + 2);
    EXPECT_EQ(seen.state, state);
  }
}

// A call that takes space fails, and a later call takes the same place and more behind it.
TEST(Commit, SurvivesPagesThatAFailedWriterLeftWhereACallFailed) {
  for (std::uint64_t call = 0;; ++call) {
    recording_file_system files;
    telling history;
    history.run(files, 2);
    plain_state state = history.generations.back().state;
    fail_a_commit(files, 0, [lost = state](transaction& change) mutable {
      for (int step = 2; step < 5; ++step) test::tell(step, {change, lost});
    });
    container_file writer = container_file::open(files, path, open_access::write);
    bool failed = false;
    {
      transaction change = writer.begin(at_once);
      files.fail_call(files.calls() + call, fault::error, EIO);
      failed = test::code_of([&] { change.allocate(1); }) != errc{};
      files.fail_call(0, fault::none);
      test::tell(2, {change, state});
      ASSERT_EQ(change.commit(), 4u);
    }
    const sighting seen = look(files.after_power_cut(nullptr), path);
    EXPECT_EQ(seen.generation, 4u) << "call " << call << ", " << files.failed_call();
    EXPECT_EQ(seen.state, state) << "call " << call;
    if (!failed) {
      EXPECT_GT(call, 1u);
      break;
    }
  }
}

// commit.3: a file may be long enough in memory only, because of pages that a failed writer left
// and the device never received. In that case its size is not on the device either.
TEST(Commit, SurvivesLossOfTheSizeThatAFailedWriterLeft) {
  recording_file_system files;
  telling history;
  history.run(files, 1);
  plain_state state = history.generations.back().state;
  fail_a_commit(files, 0, [](transaction& change) {
    // Chunks are not reserved, so the file may stay shorter.
    const extent range = change.allocate_chunk(400 * page_bytes);
    change.write(range.offset, test::pattern(range.bytes, 1));
  });
  files.evict_lost();
  container_file writer = container_file::open(files, path, open_access::write);
  {
    transaction change = writer.begin(at_once);
    test::storyteller(change, state).create_chunked("b");
    change.allocate_chunk(1'000'000);  // at the end, never written, named by nothing
    change.commit();
  }
  const sighting seen = look(files.after_power_cut(nullptr), path);
  EXPECT_EQ(seen.generation, 3u);
  EXPECT_EQ(seen.state, state);
}

// ---- failing calls ----------------------------------------------------------------------------

struct FailingCall : testing::TestWithParam<std::tuple<fault, int, bool>> {};

TEST_P(FailingCall, LeavesTheOldGenerationOrTheNew) {
  const auto [how, number, lasting] = GetParam();
  std::uint64_t calls = 0;
  {
    recording_file_system files;
    telling().run(files);
    calls = files.calls();
  }
  ASSERT_GT(calls, 200u);
  std::mt19937_64 random(number + 1);
  int stopped = 0;
  for (std::uint64_t call = 0; call < calls; ++call) {
    SCOPED_TRACE("call " + std::to_string(call));
    recording_file_system files;
    files.fail_call(call, how, number, lasting);
    telling history;
    history.run(files);
    const std::string failed_call = files.failed_call();
    files.fail_call(UINT64_MAX, fault::none);
    ASSERT_EQ(files.open_files(), 0) << failed_call;
    if (!history.stopped_by) {
      if (how == fault::interrupted) {
        ASSERT_NE(failed_call.substr(0, 4), "sync");
      }
      ASSERT_EQ(history.generations.size(), test::history_steps + 1u);
      continue;
    }
    ++stopped;
    // Other calls are repeated after interruptions and short transfers; a sync is never repeated.
    if (how == fault::interrupted) {
      ASSERT_TRUE(failed_call == "sync" || failed_call == "sync_directory") << failed_call;
    }
    ASSERT_NE(how, fault::partial);
    ASSERT_NE(*history.stopped_by, errc::corrupt);
    ASSERT_NE(*history.stopped_by, errc::invalid_argument);
    const std::size_t reported = history.generations.size();
    for (const auto& image :
         {files.now(), files.after_power_cut(nullptr), files.after_power_cut(&random)}) {
      const sighting seen = look(image, path);
      ASSERT_GE(seen.generation, reported);
      ASSERT_LE(seen.generation, reported + 1);
      if (seen.generation == 0) continue;
      const plain_state& expected =
          seen.generation == reported ? history.generations[reported - 1].state : history.attempted;
      ASSERT_EQ(seen.state, expected);
    }
  }
  // Nearly every failing call makes the history fail; of the interrupted calls, only the syncs do.
  if (how == fault::error) {
    EXPECT_GT(stopped, 200);
  } else if (how == fault::interrupted) {
    EXPECT_GT(stopped, 10);
  }
}

INSTANTIATE_TEST_SUITE_P(With, FailingCall,
                         testing::Values(std::tuple(fault::error, EIO, false),
                                         std::tuple(fault::error, ENOSPC, true),
                                         std::tuple(fault::interrupted, 0, false),
                                         std::tuple(fault::partial, 0, false),
                                         std::tuple(fault::partial, 0, true)),
                         [](const testing::TestParamInfo<FailingCall::ParamType>& instance) {
                           const auto how = std::get<0>(instance.param);
                           const std::string name = how == fault::error         ? "AnError"
                                                    : how == fault::interrupted ? "AnInterruption"
                                                                                : "AShortTransfer";
                           return name + (std::get<2>(instance.param) ? "EverAfter" : "Once");
                         });

class Poison : public test::recorded_container {
 protected:
  Poison() {
    plain_state ignored;
    test::commit_step(container, 0, ignored);
  }

  // One more transaction, in which a sync fails after `successes` others.
  errc fail_sync(int successes) {
    files.fail_sync(successes);
    plain_state ignored;
    return test::code_of([&] { test::commit_step(container, 1, ignored); });
  }
};

TEST_F(Poison, StopsTheFileObjectAfterAFailedSync) {
  EXPECT_EQ(fail_sync(1), errc::io);
  EXPECT_TRUE(container.poisoned());
  try {
    container.begin(at_once);
    FAIL() << "began after a failed sync";
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::io);
  }
  EXPECT_EQ(container.latest().generation(), 2u);  // reading still works
  container_file again = container_file::open(files, path, open_access::write);
  plain_state ignored;
  EXPECT_EQ(test::commit_step(again, 1, ignored), 3u);
}

TEST_F(Poison, ComesFromTheRewriteToo) {
  EXPECT_EQ(fail_sync(0), errc::io);
  EXPECT_TRUE(container.poisoned());
}

// A failed rewrite leaves both superblocks as they were. A sync's error is reported once.
TEST_F(Poison, ComesFromAFullDeviceOnlyByTheSync) {
  std::set<std::string> failed;
  for (std::uint64_t failing = 0;; ++failing) {
    container_file writer = container_file::open(files, path, open_access::write);
    files.fail_call(files.calls() + failing, test::fault::error, ENOSPC);
    std::optional<transaction> begun;
    const errc code = test::code_of([&] { begun.emplace(writer.begin(at_once)); });
    const std::string call = files.failed_call();
    files.fail_call(0, test::fault::none);
    if (call.empty()) break;
    if (call != "pwrite" && call != "sync") continue;
    EXPECT_EQ(code, errc::out_of_space) << call;
    EXPECT_EQ(writer.poisoned(), call == "sync") << call;
    failed.insert(call);
  }
  EXPECT_EQ(failed.size(), 2u);
}

// record.1: an error of a mapping counts, whichever call received it.
TEST_F(Poison, ComesFromMappingsToo) {
  {
    transaction change = container.begin(at_once);
    change.check_written();
    change.write_back()->report({.error_number = EIO, .offset = 4096, .bytes = 512});
    EXPECT_EQ(test::code_of([&] { change.check_written(); }), errc::io);
    EXPECT_EQ(test::code_of([&] { change.commit(); }), errc::io);
    EXPECT_FALSE(change.active());
  }
  EXPECT_TRUE(container.poisoned());
  EXPECT_EQ(test::code_of([&] { container.begin(at_once); }), errc::io);
  EXPECT_EQ(container.latest().generation(), 2u);
  EXPECT_FALSE(container_file::open(files, path, open_access::write).poisoned());
}

// commit.6: the description of mappings is told of an error first, for instance by msync.
TEST_F(Poison, ComesFromErrorsThatAnotherDescriptionWasTold) {
  {
    const generation_view before = container.latest();
    transaction change = container.begin(at_once);
    plain_state ignored;
    test::tell(1, {change, ignored});
    files.fail_writeback(path);
    open_file& mapped = *before.shared().file->data;
    EXPECT_EQ(mapped.sync_data(), -EIO);
    EXPECT_EQ(mapped.sync_data(), 0);
    EXPECT_EQ(test::code_of([&] { change.commit(); }), errc::io);
  }
  EXPECT_TRUE(container.poisoned());
  EXPECT_EQ(look(files.after_power_cut(nullptr), path).generation, 2u);
}

TEST_F(Poison, RefusesToBuildBelowAGenerationThatAReaderHolds) {
  EXPECT_EQ(fail_sync(2),
            errc::io);  // the superblock is in the cache, but may not be on the device
  container_file reader_file = container_file::open(files, path, open_access::read);
  std::optional<generation_view> reader = reader_file.latest();
  EXPECT_EQ(reader->generation(), 3u);
  files.evict_lost();
  container_file again = container_file::open(files, path, open_access::write);
  EXPECT_EQ(again.latest().generation(), 2u);
  try {
    again.begin(at_once);
    FAIL() << "generation 3 was given away twice";
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::io);
    EXPECT_NE(std::string(refused.what()).find("close the reader and try again"),
              std::string::npos);
  }
  reader.reset();
  EXPECT_EQ(again.begin(at_once).generation(), 3u);
}

// ---- transactions that do not commit ------------------------------------------------------------

class Abort : public test::recorded_container {};

TEST_F(Abort, LeavesTheFileAsItWas) {
  plain_state state;
  test::commit_step(container, 0, state);
  const auto before = files.now();
  {
    plain_state ignored = state;
    transaction change = container.begin(at_once);
    test::tell(1, {change, ignored});
    test::storyteller(change, ignored).dense("large", 200'000, 1);
    EXPECT_GT(files.now().at(path).size(), before.at(path).size());
    change.abort();
    EXPECT_FALSE(change.active());
    EXPECT_THROW(change.find("a"), error);
    EXPECT_THROW(change.commit(), error);
  }
  EXPECT_EQ(files.now().at(path).size(),
            before.at(path).size());  // even the file's size is as before
  EXPECT_EQ(observe(container.latest()), state);
  EXPECT_EQ(container.begin(at_once).generation(), 3u);
}

TEST_F(Abort, OfAKilledWriterIsTidiedUpByTheNextCommit) {
  {
    std::unique_ptr<open_file> dead;
    ASSERT_GE(files.open(path, open_access::write, dead), 0);
    dead->allocate(1u << 20, 1u << 20);
  }
  container.begin(at_once).commit();
  EXPECT_EQ(files.now().at(path).size(), container.latest().end_of_file());
}

// commit.8: all bytes that a reader holds lie before the tail.
TEST_F(Abort, GivesTheTailBackBesideReaders) {
  plain_state state;
  test::commit_step(container, 0, state);
  const generation_view reader = container.latest();
  const std::uint64_t before = files.now().at(path).size();
  {
    transaction change = container.begin(at_once);
    change.allocate(100'000);
    EXPECT_GT(files.now().at(path).size(), before);
  }
  EXPECT_EQ(files.now().at(path).size(), before);
  EXPECT_EQ(observe(reader), state);
}

TEST_F(Abort, KeepsTheTailWhileTheNoShrinkByteIsHeld) {
  std::unique_ptr<open_file> mapper;
  ASSERT_GE(files.open(path, open_access::read, mapper), 0);
  ASSERT_GE(mapper->try_lock(no_shrink_lock, lock_mode::shared), 0);
  std::uint64_t size = 0;
  {
    transaction change = container.begin(at_once);
    change.allocate(100'000);
    size = files.now().at(path).size();
  }
  EXPECT_EQ(files.now().at(path).size(), size);
}

TEST_F(Abort, FollowsAnExceptionBetweenSyncAndSuperblock) {
  plain_state ignored;
  transaction change = container.begin(at_once);
  test::tell(0, {change, ignored});
  const auto lose = [] { throw error(errc::io, "a mapping failed"); };
  EXPECT_THROW(change.commit({.after_sync = lose}), error);
  EXPECT_FALSE(change.active());
  EXPECT_FALSE(container.poisoned());
  EXPECT_EQ(container.latest().generation(), 1u);
  EXPECT_EQ(container.begin(at_once).generation(), 2u);
}

// The caller pins what it goes on to read, and gives up its mappings, while nobody else can write.
TEST_F(Abort, TellsItsCallerBeforeTheLockIsReleased) {
  // A container that was open before a failed sync of this process would refuse to begin.
  const auto begin_elsewhere = [&] {
    return test::code_of(
        [&] { container_file::open(files, path, open_access::write).begin(at_once); });
  };
  int failures = 0;
  bool failed = true;
  for (std::uint64_t call = 0; failed; ++call) {
    SCOPED_TRACE(call);
    container_file own = container_file::open(files, path, open_access::write);
    transaction change = own.begin(at_once);
    std::vector<commit_outcome> told;
    errc others{};
    const auto tell = [&](commit_outcome outcome) {
      told.push_back(outcome);
      failed = !files.failed_call().empty();
      files.fail_call(UINT64_MAX, fault::none);
      others = begin_elsewhere();
    };
    files.fail_call(files.calls() + call, fault::error, EIO);
    const errc code = test::code_of([&] { change.commit({.before_release = tell}); });
    files.fail_call(UINT64_MAX, fault::none);
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(others, errc::busy);
    EXPECT_EQ(told[0], code == errc{} ? commit_outcome::durable : commit_outcome::failed);
    EXPECT_TRUE(code == errc{} || code == errc::io);
    failures += code != errc{};
    EXPECT_EQ(begin_elsewhere(), errc{});
  }
  EXPECT_GT(failures, 4);
}

TEST_F(Abort, FollowsAFailedWriteOfData) {
  transaction change = container.begin(at_once);
  change.put(test::chunked_record("a"));
  const extent range = change.allocate_chunk(10);
  const auto bytes = test::pattern(10, 1);
  files.fail_call(files.calls(), fault::error, EIO);
  EXPECT_THROW(change.write(range.offset, bytes), error);
  files.fail_call(UINT64_MAX, fault::none);
  EXPECT_THROW(change.commit(), error);
  EXPECT_EQ(container.latest().generation(), 1u);
}

// A change that failed half-way may have left the trees inconsistent, so lookups and the commit
// must refuse.
TEST_F(Abort, FollowsAChangeThatFailedHalfWay) {
  plain_state state;
  {
    transaction change = container.begin(at_once);
    test::tell(0, {change, state});
    test::storyteller(change, state).note("a", "long", std::string(6000, 'x'));
    change.commit();
  }
  bool failed = false;
  for (std::uint64_t call = 0; call < 8; ++call) {
    container_file again = container_file::open(files, path, open_access::write);
    transaction change = again.begin(at_once);
    const std::uint64_t end = files.calls();
    files.fail_call(end + call, fault::error, EIO);
    plain_state ignored = state;
    try {
      test::storyteller(change, ignored).note("a", "long", std::string(7000, 'y'));
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::io);
      failed = true;
    }
    files.fail_call(UINT64_MAX, fault::none);
    if (ignored != state) break;  // there are no more calls
    const errc looked_up = test::code_of([&] { change.find("a"); });
    try {
      change.commit();
      // A read failed before anything was changed.
      EXPECT_EQ(looked_up, errc{});
      EXPECT_EQ(observe(again.latest()), state);
    } catch (const error& refused) {
      EXPECT_EQ(looked_up, errc::io);
      EXPECT_EQ(refused.code(), errc::io);
      EXPECT_NE(std::string(refused.what()).find("one of its changes or writes has failed"),
                std::string::npos);
    }
    EXPECT_EQ(observe(again.latest()), state);
    EXPECT_EQ(test::unsound(again.latest()), "");
  }
  EXPECT_TRUE(failed);
}

// ---- creating -----------------------------------------------------------------------------------

// If any one call fails (for example for lack of descriptors), the container exists or its name is
// free.
TEST(Create, LeavesNoNameWhenItFails) {
  for (std::uint64_t call = 0;; ++call) {
    recording_file_system files;
    files.fail_call(call, test::fault::error, EMFILE);
    const errc code = test::code_of([&] { container_file::create(files, path, {.id = uuid{}}); });
    EXPECT_EQ(files.now().contains(path), code == errc{}) << files.failed_call();
    if (files.failed_call().empty()) break;
  }
}

// After a failed call there is no file, or the whole container.
TEST(Create, LeavesAWholeFileOrNone) {
  for (const fault how : {fault::error, fault::death}) {
    for (std::uint64_t failing = 0;; ++failing) {
      recording_file_system files;
      files.fail_call(failing, how, ENOSPC);
      std::optional<errc> failed;
      try {
        container_file::create(files, path, {.id = uuid{}});
      } catch (const error& failure) {
        failed = failure.code();
        EXPECT_NE(std::string(failure.what()).find(path), std::string::npos) << failure.what();
      }
      EXPECT_EQ(files.open_files(), 0);
      const std::string call = files.failed_call();
      files.fail_call(UINT64_MAX, fault::none);
      if (files.calls() <= failing) break;  // there are no more calls
      const auto left = files.now();
      if (left.empty()) continue;
      ASSERT_EQ(left.size(), 1u) << call;
      EXPECT_EQ(look(left, path).generation, 1u) << call;
      // A name that a power cut could remove is removed at once.
      if (how == fault::error) {
        EXPECT_NE(call, "sync_directory");
      }
    }
  }
}

TEST(Create, NeedsLocksThatOthersSee) {
  recording_file_system files;
  container_file::create(files, path, {.id = uuid{}});
  files.honours_locks = false;
  for (const open_access access : {open_access::read, open_access::write})
    EXPECT_EQ(test::code_of([&] { container_file::open(files, path, access); }), errc::unsupported);
}

// ---- interleavings ------------------------------------------------------------------------------

// A writer that repeats the history.
struct steady_writer {
  explicit steady_writer(recording_file_system& files)
      : container(container_file::create(files, path, {.id = uuid{}})) {}

  void commit() {
    told.push_back(told.back());
    const auto step = static_cast<int>(told.size() - 2) % test::history_steps;
    test::commit_step(container, step, told.back());
  }

  container_file container;
  std::vector<plain_state> told{{}};  // the content of each generation, from the first
};

// A whole transaction of a writer runs before call number `call` of a reader's opening, for every
// `call`.
TEST(Interleaving, ReadersPinWholeGenerationsBesideWriters) {
  for (int commits = 1; commits <= 3; ++commits) {
    for (std::uint64_t call = 0;; ++call) {
      recording_file_system files;
      steady_writer writer(files);
      writer.commit();
      container_file reader = container_file::open(files, path, open_access::read);
      const std::uint64_t start = files.calls();
      bool ran = false;
      files.before_call = [&] {
        if (files.calls() != start + call) return;
        ran = true;
        for (int i = 0; i < commits; ++i) writer.commit();
      };
      const generation_view view = reader.latest();
      files.before_call = nullptr;
      ASSERT_EQ(observe(view), writer.told[view.generation() - 1]);
      // Later commits do not change the pinned generation.
      while (writer.told.size() < 7) writer.commit();
      ASSERT_EQ(observe(view), writer.told[view.generation() - 1]) << "call " << call;
      ASSERT_EQ(test::unsound(writer.container.latest()), "");
      if (!ran) break;
    }
  }
}

// A reader opens the container, reads it and keeps its view before call number `call` of a writer's
// transaction, for every `call`.
TEST(Interleaving, WritersNeverTouchWhatAReaderHolds) {
  for (std::uint64_t call = 0;; ++call) {
    recording_file_system files;
    steady_writer writer(files);
    writer.commit();
    writer.commit();
    std::optional<container_file> reader;
    std::optional<generation_view> view;
    const std::uint64_t start = files.calls();
    files.before_call = [&] {
      if (files.calls() != start + call || view) return;
      reader = container_file::open(files, path, open_access::read);
      view = reader->latest();
    };
    writer.commit();
    files.before_call = nullptr;
    if (!view) break;
    ASSERT_GE(view->generation(), 3u);
    ASSERT_LE(view->generation(), 4u);
    while (writer.told.size() < 7) writer.commit();
    ASSERT_EQ(observe(*view), writer.told[view->generation() - 1]) << "call " << call;
  }
}

// Two threads take turns. The reader stops before its call number `reader_stop`. The writer commits
// once and stops before call `writer_stop` of its next transaction. Then the reader runs to its
// end, and after it the writer.
class Baton {
 public:
  enum class turn : std::uint8_t { reader_first, writer_first, reader_second, writer_second, over };

  // Waits for a turn.
  void wait_for(turn wanted) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return now_ >= wanted; });
  }
  void give(turn next) {
    const std::lock_guard lock(mutex_);
    now_ = next;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  turn now_ = turn::reader_first;
};

TEST(Interleaving, ReadersAndWritersMeetAtEveryPairOfSteps) {
  using turn = Baton::turn;
  bool reader_has_more = true;
  for (std::uint64_t reader_stop = 0; reader_has_more; ++reader_stop) {
    bool writer_has_more = true;
    for (std::uint64_t writer_stop = 0; writer_has_more && reader_has_more; ++writer_stop) {
      recording_file_system files;
      container_file writer = container_file::create(files, path, {.id = uuid{}});
      std::vector<plain_state> told{{}};
      const auto commit_one = [&] {
        transaction change = writer.begin(at_once);
        told.push_back(told.back());
        test::storyteller story(change, told.back());
        if (told.size() == 2) story.create_chunked("a");
        for (unsigned i = 0; i < 3; ++i)
          story.chunk("a", i, static_cast<unsigned>(told.size()) + i);
        story.dense("d", 3000, static_cast<unsigned>(told.size()));
        change.commit();
      };
      commit_one();
      commit_one();
      container_file reader = container_file::open(files, path, open_access::read);

      Baton baton;
      bool reader_stopped = false;
      bool writer_stopped = false;
      std::uint64_t writer_start = UINT64_MAX;
      const std::uint64_t reader_start = files.calls();
      const auto writer_id = std::this_thread::get_id();
      files.before_each_call = [&] {
        if (std::this_thread::get_id() == writer_id) {
          if (writer_stopped || files.calls() != writer_start + writer_stop) return;
          writer_stopped = true;
          baton.give(turn::reader_second);
          baton.wait_for(turn::writer_second);
        } else {
          if (reader_stopped || files.calls() != reader_start + reader_stop) return;
          reader_stopped = true;
          baton.give(turn::writer_first);
          baton.wait_for(turn::reader_second);
        }
      };
      std::optional<generation_view> view;
      std::thread reading([&] {
        view = reader.latest();
        baton.give(reader_stopped ? turn::writer_second : turn::over);
      });
      baton.wait_for(turn::writer_first);
      if (reader_stopped) {
        commit_one();
        writer_start = files.calls();
        commit_one();
        if (!writer_stopped) baton.give(turn::reader_second);
      }
      reading.join();
      files.before_each_call = nullptr;
      reader_has_more = reader_stopped;
      writer_has_more = writer_stopped;
      commit_one();
      commit_one();
      ASSERT_EQ(observe(*view), told[view->generation() - 1])
          << "reader's call " << reader_stop << ", writer's call " << writer_stop;
      view.reset();
      ASSERT_EQ(test::unsound(writer.latest()), "");
    }
  }
}

class Renaming : public testing::Test {
 protected:
  // A container of generation `commits` + 1.
  static plain_state make(recording_file_system& files, const std::string& name, int commits) {
    container_file container = container_file::create(files, name, {.id = uuid{}});
    plain_state state;
    for (int step = 0; step < commits; ++step) test::commit_step(container, step, state);
    return state;
  }

  const std::string compacted = "/box/compacted";
};

// Before some call of `begin`, a compacted file takes the name and another process locks that file.
// The transaction must not write into it.
TEST_F(Renaming, TheWriterLockIsThatOfTheFileBehindTheName) {
  bool refused = false;
  for (std::uint64_t call = 0;; ++call) {
    recording_file_system files;
    make(files, path, 1);
    make(files, compacted, 3);
    container_file writer = container_file::open(files, path, open_access::write);
    std::optional<container_file> other;
    std::optional<transaction> others;
    const std::uint64_t start = files.calls();
    files.before_call = [&] {
      if (other || files.calls() != start + call) return;
      files.rename(compacted, path);
      other = container_file::open(files, path, open_access::write);
      others = other->begin(at_once);
    };
    try {
      const transaction change = writer.begin(at_once);
      EXPECT_EQ(change.generation(), 3u) << "two writers of one file, call " << call;
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::busy) << failure.what();
      refused = true;
    }
    files.before_call = nullptr;
    if (!other) break;
  }
  EXPECT_TRUE(refused);
}

// A compacted file takes the name before some call of a reader, and writers use the file at once.
TEST_F(Renaming, APinIsOnTheFileThatIsRead) {
  for (std::uint64_t call = 0;; ++call) {
    recording_file_system files;
    const plain_state before = make(files, path, 2);
    const plain_state compact = make(files, compacted, 3);
    container_file reader = container_file::open(files, path, open_access::read);
    // One more commit, so that both files have the same generation.
    plain_state after = before;
    {
      container_file writer = container_file::open(files, path, open_access::write);
      transaction change = writer.begin(at_once);
      test::storyteller(change, after).dense("e", 300, 2);
      change.commit();
    }
    std::optional<container_file> other;
    const std::uint64_t start = files.calls();
    files.before_call = [&] {
      if (other || files.calls() != start + call) return;
      files.rename(compacted, path);
      other = container_file::open(files, path, open_access::write);
    };
    const generation_view view = reader.latest();
    files.before_call = nullptr;
    if (!other) break;
    EXPECT_EQ(view.generation(), 4u);
    const plain_state seen = observe(view);
    EXPECT_TRUE(seen == after || seen == compact) << "call " << call;
    // Writers of the file that has the name see the pin of this view.
    if (seen == compact) {
      EXPECT_EQ(other->pinned(), (std::vector<generation_range>{{4, 4}})) << "call " << call;
    } else {
      EXPECT_TRUE(other->pinned().empty()) << "call " << call;
    }
  }
}

// commit.1, docs/decisions/0021: a dying writer left a slot torn, and the kernel could not write
// it. Later the kernel may read the old superblock back from the device. By then no writer may have
// reused the space of that superblock's generation. `next_writers` runs the writers up to that
// moment.
template <class Next>
void expect_reader_not_misled(Next&& next_writers) {
  bool reader_has_more = true;
  for (std::uint64_t call = 0; reader_has_more; ++call) {
    bool writer_has_more = true;
    for (std::uint64_t death = 0; writer_has_more && reader_has_more; ++death) {
      recording_file_system files;
      container_file writer = container_file::create(files, path, {.id = uuid{}});
      std::vector<plain_state> told{{}};
      const auto change_all = [&](transaction& change) {
        told.resize(change.generation() - 1);
        told.push_back(told.back());
        test::storyteller story(change, told.back());
        if (told.size() == 2) story.create_chunked("a");
        for (unsigned i = 0; i < 3; ++i)
          story.chunk("a", i, static_cast<unsigned>(told.size() * 16) + i);
      };
      const auto commit_one = [&] {
        transaction change = writer.begin(at_once);
        change_all(change);
        change.commit();
      };
      for (int i = 0; i < 2; ++i) commit_one();
      container_file reader = container_file::open(files, path, open_access::read);
      commit_one();  // generation 4, in slot 1: the reader picks it

      reader_has_more = false;
      const std::uint64_t start = files.calls();
      files.before_call = [&] {
        if (reader_has_more || files.calls() != start + call) return;
        reader_has_more = true;
        commit_one();  // generation 5, in slot 0
        {              // the writer of generation 6 dies, perhaps while it writes the superblock
          transaction change = writer.begin(at_once);
          change_all(change);
          files.fail_call(files.calls() + death, fault::death);
          writer_has_more = test::code_of([&] { change.commit(); }) != errc{};
        }
        files.fail_call(UINT64_MAX, fault::none);
        next_writers(files, change_all);
        files.evict_lost();
      };
      const generation_view view = reader.latest();
      files.before_call = nullptr;
      ASSERT_EQ(observe(view), told[view.generation() - 1])
          << "reader's call " << call << ", writer's call " << death;
    }
  }
}

TEST(Interleaving, AReaderIsNotMisledByASlotThatComesBack) {
  expect_reader_not_misled([](recording_file_system& files, const auto& change_all) {
    {  // the next writer's first sync fails
      container_file next = container_file::open(files, path, open_access::write);
      files.fail_sync(0);
      EXPECT_EQ(test::code_of([&] { next.begin(at_once); }), errc::io);
      files.fail_sync(1'000'000);
    }
    // The writer after it has written its data when the kernel reads the slot from the device
    // again.
    container_file last = container_file::open(files, path, open_access::write);
    transaction change = last.begin(at_once);
    change_all(change);
  });
}

TEST(Interleaving, AReaderIsNotMisledByARewriteThatNeverArrived) {
  expect_reader_not_misled([](recording_file_system& files, const auto& change_all) {
    container_file next = container_file::open(files, path, open_access::write);
    transaction change = next.begin(at_once);
    files.fail_writeback(path);  // write-back of the unsynced bytes fails
    change_all(change);
  });
}

TEST(Interleaving, ASecondWriterWaitsItsTurn) {
  recording_file_system files;
  container_file first = container_file::create(files, path, {.id = uuid{}});
  container_file second = container_file::open(files, path, open_access::write);
  std::optional<transaction> change = first.begin(at_once);
  for (container_file* const opened :
       {&first, &second}) {  // also with several objects of one process
    try {
      opened->begin(std::chrono::milliseconds{50});
      FAIL() << "two writers at once";
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), errc::busy);
    }
  }
  change->commit();
  EXPECT_EQ(second.begin(at_once).generation(), 3u);
}

}  // namespace
}  // namespace shale::format
