// Tests every crash and every failing call of a small history, on recorded files.

#include <gtest/gtest.h>

#include <cerrno>
#include <random>

#include "format/after_crash.hpp"
#include "format/bytes/byte_order.hpp"
#include "format/generations/generation_state.hpp"
#include "format/os/pins.hpp"
#include "format/pages/header.hpp"
#include "format/recorded_container.hpp"
#include "format/small_history.hpp"
#include "shale/error.hpp"
#include "support/failures.hpp"
#include "support/instrumented.hpp"
#include "support/recording_file_system.hpp"

namespace shale::format {
namespace {

using test::fault;
using test::look;
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
    for (int sample = 0; sample < test::repeats(3); ++sample)
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
    if (test::is_left_out(random)) continue;
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
    // One call matters, the write of the other slot, and only cuts that lose one sector and keep
    // another one there. One in four does.
    for (int sample = 0; sample < test::repeats(32); ++sample)
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
    // At the end, never written, named by nothing. A last page that it had in part would be cleared.
    change.allocate_chunk(250 * page_bytes);
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
    // Short transfers are all continued by the same code, and the history ends well.
    if (how == fault::partial && test::is_left_out(random)) continue;
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

  // One more transaction, in which a sync fails after `successes` others. It syncs its data and its
  // superblock; the superblocks that the container made durable are not synced again.
  errc fail_sync(int successes) {
    files.fail_sync(successes);
    plain_state ignored;
    return test::code_of([&] { test::commit_step(container, 1, ignored); });
  }
};

TEST_F(Poison, StopsTheFileObjectAfterAFailedSync) {
  EXPECT_EQ(fail_sync(0), errc::io);
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

// commit.6: the transaction before fails after `begin` has looked, and before it has the lock.
TEST_F(Poison, StopsAWriterThatHasToWait) {
  transaction first = container.begin(at_once);
  bool failed = false;
  files.before_call = [&] {
    if (failed) return;
    failed = true;
    files.fail_sync(0);
    EXPECT_EQ(test::code_of([&] { first.commit(); }), errc::io);
    files.fail_sync(1'000'000);
  };
  EXPECT_EQ(test::code_of([&] { container.begin(std::chrono::seconds{1}); }), errc::io);
  files.before_call = nullptr;
  EXPECT_TRUE(failed);
  EXPECT_EQ(container.latest().generation(), 2u);
}

TEST_F(Poison, ComesFromTheRewriteToo) {
  container_file writer = container_file::open(files, path, open_access::write);
  files.fail_sync(0);
  EXPECT_EQ(test::code_of([&] { writer.begin(at_once); }), errc::io);
  EXPECT_TRUE(writer.poisoned());
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
  // The superblock is in the cache, but may not be on the device.
  EXPECT_EQ(fail_sync(1), errc::io);
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

}  // namespace
}  // namespace shale::format
