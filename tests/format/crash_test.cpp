// What every crash, every failing call and every interleaving leaves behind, on recorded files.

#include <gtest/gtest.h>

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

#include "format/bytes.hpp"
#include "format/header.hpp"
#include "format/small_history.hpp"
#include "shale/error.hpp"
#include "support/recording_file_system.hpp"

namespace shale::format {
namespace {

using test::fault;
using test::observe;
using test::plain_state;
using test::recording_file_system;

constexpr patience at_once{0};
const std::string path = "/box/history.shale";

// A generation that the history made, and which changes of the file its commit took.
struct told_generation {
  plain_state state;
  std::size_t began = 0;      // changes recorded when its commit began
  std::size_t published = 0;  // when commit had returned
};

// Tells the whole history; stops at the first error.
struct telling {
  std::vector<told_generation> generations;  // [0] is generation 1, empty
  std::optional<errc> stopped_by;
  bool in_commit = false;  // the error came out of commit or create
  plain_state attempted;   // what was being made then

  void run(recording_file_system& files, int steps = test::history_steps) {
    try {
      in_commit = true;
      std::size_t began = files.changes();
      file container = file::create(files, path, {.id = uuid{}});
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

// Opens an image and says which of the told generations it shows.
struct sighting {
  std::uint64_t generation = 0;  // 0: there is no file
  plain_state state;
};

sighting look(const recording_file_system::image& image) {
  recording_file_system files(image);
  if (image.empty()) return {};
  file container = file::open(files, path, open_access::write);
  const generation_view view = container.latest();
  sighting seen{view.generation(), observe(view)};
  EXPECT_EQ(test::unsound(view), "");
  // The next writer finds its feet, and what it makes is sound too.
  transaction change = container.begin(at_once);
  plain_state next = seen.state;
  test::storyteller story(change, next);
  story.create_chunked("after the crash");
  story.chunk("after the crash", 3, 200);
  story.dense("dense after the crash", 700, 201);
  change.commit();
  const generation_view after = container.latest();
  EXPECT_EQ(after.generation(), seen.generation + 1);
  EXPECT_EQ(observe(after), next);
  EXPECT_EQ(test::unsound(after), "");
  // Nor did making it touch the generation before.
  EXPECT_EQ(observe(view), seen.state);
  return seen;
}

// A crash after `count` changes may show the last generation that was reported by then, or the one
// that was being made.
void expect_old_or_new(const telling& history, std::size_t count,
                       const recording_file_system::image& image) {
  std::size_t reported = 0;  // generations that had been reported
  while (reported < history.generations.size() && history.generations[reported].published <= count)
    ++reported;
  const sighting seen = look(image);
  ASSERT_GE(seen.generation, reported) << "after " << count << " changes";
  ASSERT_LE(seen.generation, reported + 1) << "after " << count << " changes";
  if (seen.generation == 0 || seen.generation > history.generations.size()) return;
  ASSERT_EQ(seen.state, history.generations[seen.generation - 1].state)
      << "after " << count << " changes";
}

TEST(Commit, TellsTheHistoryWithoutAnyCrash) {
  recording_file_system files;
  telling history;
  history.run(files);
  ASSERT_FALSE(history.stopped_by);
  const sighting seen = look(files.now());
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

// commit.5: a generation that waiters are told of is there after a power cut.
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
    if (announced < 2) continue;  // as it was created
    ASSERT_GE(look(crash.after_power_cut(nullptr)).generation, announced);
  } while (crash.next());
  EXPECT_EQ(announced, history.generations.size());
}

// Every write arrives in halves, so that a superblock can be met half-written, too.
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
  for (std::uint64_t at = 0; at < calls; ++at) {
    SCOPED_TRACE("call " + std::to_string(at));
    recording_file_system files;
    files.fail_call(at, how, number, lasting);
    telling history;
    history.run(files);
    const std::string failed_call = files.failed_call();
    files.fail_call(UINT64_MAX, fault::none);
    if (!history.stopped_by) {
      ASSERT_EQ(history.generations.size(), test::history_steps + 1u);
      continue;
    }
    ++stopped;
    // Interruptions and short transfers are the loops' business; but a sync is never repeated.
    if (how == fault::interrupted) {
      ASSERT_EQ(failed_call, "sync");
    }
    ASSERT_NE(how, fault::partial);
    ASSERT_NE(*history.stopped_by, errc::corrupt);
    ASSERT_NE(*history.stopped_by, errc::invalid_argument);
    const std::size_t reported = history.generations.size();
    for (const auto& image :
         {files.now(), files.after_power_cut(nullptr), files.after_power_cut(&random)}) {
      const sighting seen = look(image);
      ASSERT_GE(seen.generation, reported);
      ASSERT_LE(seen.generation, reported + 1);
      if (seen.generation == 0) continue;
      const plain_state& expected =
          seen.generation == reported ? history.generations[reported - 1].state : history.attempted;
      ASSERT_EQ(seen.state, expected);
    }
  }
  // All but a few calls matter; of the interrupted ones, the syncs.
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
                         [](const testing::TestParamInfo<FailingCall::ParamType>& of) {
                           const auto how = std::get<0>(of.param);
                           const std::string name = how == fault::error         ? "AnError"
                                                    : how == fault::interrupted ? "AnInterruption"
                                                                                : "AShortTransfer";
                           return name + (std::get<2>(of.param) ? "EverAfter" : "Once");
                         });

class Poison : public testing::Test {
 protected:
  Poison() {
    plain_state ignored;
    transaction change = container.begin(at_once);
    test::tell(0, {change, ignored});
    change.commit();
  }

  // One more transaction, in which a sync fails after `successes` others.
  errc fail_sync(int successes) {
    files.fail_sync(successes);
    try {
      plain_state ignored;
      transaction change = container.begin(at_once);
      test::tell(1, {change, ignored});
      change.commit();
      return errc{};
    } catch (const error& failure) {
      return failure.code();
    }
  }

  recording_file_system files;
  file container = file::create(files, path, {.id = uuid{}});
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
  EXPECT_EQ(container.latest().generation(), 2u);  // reading goes on
  file again = file::open(files, path, open_access::write);
  plain_state ignored;
  transaction change = again.begin(at_once);
  test::tell(1, {change, ignored});
  EXPECT_EQ(change.commit(), 3u);
}

TEST_F(Poison, ComesFromTheRewriteToo) {
  EXPECT_EQ(fail_sync(0), errc::io);
  EXPECT_TRUE(container.poisoned());
}

TEST_F(Poison, RefusesToBuildBelowAGenerationThatAReaderHolds) {
  EXPECT_EQ(fail_sync(2), errc::io);  // the superblock is in the cache, but maybe nowhere else
  file reader_file = file::open(files, path, open_access::read);
  std::optional<generation_view> reader = reader_file.latest();
  EXPECT_EQ(reader->generation(), 3u);
  files.evict_lost();
  file again = file::open(files, path, open_access::write);
  EXPECT_EQ(again.latest().generation(), 2u);
  try {
    again.begin(at_once);
    FAIL() << "generation 3 was given away twice";
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::io);
    EXPECT_NE(std::string(refused.what()).find("close it and try again"), std::string::npos);
  }
  reader.reset();
  EXPECT_EQ(again.begin(at_once).generation(), 3u);
}

// ---- transactions that do not commit ------------------------------------------------------------

TEST(Abort, LeavesTheFileAsItWas) {
  recording_file_system files;
  file container = file::create(files, path, {.id = uuid{}});
  plain_state state;
  {
    transaction change = container.begin(at_once);
    test::tell(0, {change, state});
    change.commit();
  }
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
  EXPECT_EQ(files.now().at(path).size(), before.at(path).size());  // even its space is back
  EXPECT_EQ(observe(container.latest()), state);
  EXPECT_EQ(container.begin(at_once).generation(), 3u);
}

TEST(Abort, OfAKilledWriterIsTidiedUpByTheNextCommit) {
  recording_file_system files;
  file container = file::create(files, path, {.id = uuid{}});
  {
    std::unique_ptr<open_file> dead;
    ASSERT_GE(files.open(path, open_access::write, dead), 0);
    dead->allocate(1u << 20, 1u << 20);
  }
  container.begin(at_once).commit();
  EXPECT_EQ(files.now().at(path).size(), container.latest().end_of_file());
}

TEST(Abort, KeepsTheTailWhileAReaderMayMapIt) {
  recording_file_system files;
  file container = file::create(files, path, {.id = uuid{}});
  const generation_view reader = container.latest();
  std::uint64_t size = 0;
  {
    transaction change = container.begin(at_once);
    change.allocate(100'000);
    size = files.now().at(path).size();
  }
  EXPECT_EQ(files.now().at(path).size(), size);
}

TEST(Abort, FollowsAnExceptionBetweenSyncAndSuperblock) {
  recording_file_system files;
  file container = file::create(files, path, {.id = uuid{}});
  plain_state ignored;
  transaction change = container.begin(at_once);
  test::tell(0, {change, ignored});
  EXPECT_THROW(change.commit([] { throw error(errc::io, "a mapping failed"); }), error);
  EXPECT_FALSE(change.active());
  EXPECT_FALSE(container.poisoned());
  EXPECT_EQ(container.latest().generation(), 1u);
  EXPECT_EQ(container.begin(at_once).generation(), 2u);
}

TEST(Abort, FollowsAFailedWriteOfData) {
  recording_file_system files;
  file container = file::create(files, path, {.id = uuid{}});
  transaction change = container.begin(at_once);
  change.put(test::chunked_record("a"));
  const extent where = change.allocate_chunk(10);
  const auto bytes = test::pattern(10, 1);
  files.fail_call(files.calls(), fault::error, EIO);
  EXPECT_THROW(change.write(where.offset, bytes), error);
  files.fail_call(UINT64_MAX, fault::none);
  EXPECT_THROW(change.commit(), error);
  EXPECT_EQ(container.latest().generation(), 1u);
}

// ---- interleavings ------------------------------------------------------------------------------

// A whole writer's transaction runs before call number `at` of a reader's opening, for every `at`.
TEST(Interleaving, ReadersArePinnedOnSomethingWholeWhateverWritersDo) {
  for (int commits = 1; commits <= 3; ++commits) {
    for (std::uint64_t at = 0;; ++at) {
      recording_file_system files;
      file writer = file::create(files, path, {.id = uuid{}});
      std::vector<plain_state> told{{}};
      const auto commit_one = [&] {
        transaction change = writer.begin(at_once);
        told.push_back(told.back());
        test::tell(static_cast<int>(told.size() - 2) % test::history_steps, {change, told.back()});
        change.commit();
      };
      commit_one();
      file reader = file::open(files, path, open_access::read);
      const std::uint64_t start = files.calls();
      bool ran = false;
      files.before_call = [&] {
        if (files.calls() != start + at) return;
        ran = true;
        for (int i = 0; i < commits; ++i) commit_one();
      };
      const generation_view view = reader.latest();
      files.before_call = nullptr;
      ASSERT_EQ(observe(view), told[view.generation() - 1]);
      // Whatever is committed from here on leaves it alone.
      while (told.size() < 7) commit_one();
      ASSERT_EQ(observe(view), told[view.generation() - 1]) << "call " << at;
      ASSERT_EQ(test::unsound(writer.latest()), "");
      if (!ran) break;
    }
  }
}

// A reader opens, reads and stays before call number `at` of a writer's transaction, for every
// `at`.
TEST(Interleaving, WritersNeverTouchWhatAReaderHolds) {
  for (std::uint64_t at = 0;; ++at) {
    recording_file_system files;
    file writer = file::create(files, path, {.id = uuid{}});
    std::vector<plain_state> told{{}};
    const auto commit_one = [&] {
      transaction change = writer.begin(at_once);
      told.push_back(told.back());
      test::tell(static_cast<int>(told.size() - 2) % test::history_steps, {change, told.back()});
      change.commit();
    };
    commit_one();
    commit_one();
    std::optional<file> reader;
    std::optional<generation_view> view;
    const std::uint64_t start = files.calls();
    files.before_call = [&] {
      if (files.calls() != start + at || view) return;
      reader = file::open(files, path, open_access::read);
      view = reader->latest();
    };
    commit_one();
    files.before_call = nullptr;
    if (!view) break;
    ASSERT_GE(view->generation(), 3u);
    ASSERT_LE(view->generation(), 4u);
    while (told.size() < 7) commit_one();
    ASSERT_EQ(observe(*view), told[view->generation() - 1]) << "call " << at;
  }
}

// Two threads of which one runs at a time: the reader stops before its call number `reader_stop`,
// the writer commits once and stops before call `writer_stop` of its next transaction, the reader
// goes on to the end, the writer finishes.
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
      file writer = file::create(files, path, {.id = uuid{}});
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
      file reader = file::open(files, path, open_access::read);

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

TEST(Interleaving, ASecondWriterWaitsItsTurn) {
  recording_file_system files;
  file first = file::create(files, path, {.id = uuid{}});
  file second = file::open(files, path, open_access::write);
  std::optional<transaction> change = first.begin(at_once);
  for (file* const each : {&first, &second}) {  // also within one process, one object
    try {
      each->begin(patience{50});
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
