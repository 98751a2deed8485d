// Tests writers that make several generations and publish only some of them (commit.10): every
// crash, failing calls, readers beside them, and transactions at every step of publishing.

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "format/after_crash.hpp"
#include "format/bytes/byte_order.hpp"
#include "format/bytes/file_layout.hpp"
#include "format/os/locks.hpp"
#include "format/small_history.hpp"
#include "format/transaction/commit.hpp"
#include "format/transaction/writer.hpp"
#include "shale/error.hpp"
#include "support/failures.hpp"
#include "support/instrumented.hpp"
#include "support/recording_file_system.hpp"

namespace shale::format {
namespace {

using test::code_of;
using test::fault;
using test::look;
using test::observe;
using test::plain_state;
using test::recording_file_system;
using test::sighting;

constexpr std::chrono::milliseconds at_once{0};
const std::string path = "/box/chain.shale";

// One call of publish_written, and the range of recorded changes that it made.
struct publication {
  std::uint64_t generation = 0;
  std::size_t began = 0;
  std::size_t ended = SIZE_MAX;  // it has not returned
};

// A container whose generations are made on each other, with an oracle of their content.
struct chain {
  explicit chain(recording_file_system& in)
      : files(in), container(container_file::create(in, path, {.id = uuid{}})) {
    published.push_back({1, 0, files.changes()});
  }

  // Begins the next generation, on the one before.
  transaction begin() { return held ? begin_on_written(held) : container.begin(at_once); }

  // Makes the next generation, by the next step of the history.
  void add() {
    transaction change = begin();
    plain_state state = told.back();
    test::tell(static_cast<int>(told.size() - 1) % test::history_steps, {change, state});
    change.commit_unpublished();
    held = change.writer_owner();
    told.push_back(state);
  }

  void publish(const std::function<void(std::uint64_t)>& after_sync = {}) {
    publication now{told.size(), files.changes(), SIZE_MAX};
    published.push_back(now);
    const std::uint64_t generation = held->publish_written(after_sync);
    EXPECT_EQ(generation, now.generation);
    published.back().ended = files.changes();
  }

  // Releases the writer lock.
  void end() {
    held->end();
    held.reset();
  }

  recording_file_system& files;
  container_file container;
  std::shared_ptr<writer> held;        // null: nobody has the writer lock
  std::vector<plain_state> told{{}};   // the content of each generation, from the first
  std::vector<publication> published;  // in order
};

// After a crash that follows `count` changes, a reader sees the last generation that was reported
// to be durable, or the one that was being published: all transactions up to it, and none after.
void expect_in_order(const chain& made, std::size_t count,
                     const recording_file_system::image& image) {
  std::uint64_t reported = 0;
  std::uint64_t chosen = 0;
  for (const publication& one : made.published) {
    if (one.ended <= count) reported = one.generation;
    else if (one.began <= count) chosen = one.generation;
  }
  const sighting seen = look(image, path);
  ASSERT_TRUE(seen.generation == reported || seen.generation == chosen)
      << "generation " << seen.generation << " after " << count << " changes, reported " << reported
      << ", published " << chosen;
  if (seen.generation == 0) return;
  ASSERT_EQ(seen.state, made.told[seen.generation - 1]) << "after " << count << " changes";
}

// What readers are told of is durable.
void expect_announced(const recording_file_system::replay& crash) {
  const auto now = crash.after_kill();
  const auto found = now.find(path);
  if (found == now.end()) return;
  const auto announced = load<std::uint32_t>(found->second.data() + live_page_offset);
  if (announced < 2) return;  // the state after `create`
  ASSERT_GE(look(crash.after_power_cut(nullptr), path).generation, announced);
}

// Every crash from the change number `first` on.
void expect_in_order_after_crashes(const chain& made, std::size_t first, std::mt19937_64& random) {
  recording_file_system::replay crash(made.files);
  do {
    if (crash.count() < first) continue;
    expect_in_order(made, crash.count(), crash.after_kill());
    expect_in_order(made, crash.count(), crash.after_power_cut(nullptr));
    for (int sample = 0; sample < test::repeats(2); ++sample)
      expect_in_order(made, crash.count(), crash.after_power_cut(&random));
    expect_announced(crash);
    if (testing::Test::HasFatalFailure()) return;
  } while (crash.next());
}

// Publishes after the transactions whose bits are set.
void run(chain& made, unsigned publishes, int steps = test::history_steps) {
  for (int step = 0; step < steps; ++step) {
    made.add();
    if (((publishes >> step) & 1u) != 0) made.publish();
  }
}

TEST(Unpublished, GenerationsAreWholeAndInOrderAfterEveryCrash) {
  std::mt19937_64 random(20260226);
  for (const unsigned publishes : {0b1111111u, 0b1010101u, 0b0100100u, 0b1000000u, 0b0011001u}) {
    SCOPED_TRACE(publishes);
    recording_file_system files;
    chain made(files);
    run(made, publishes);
    expect_in_order_after_crashes(made, 0, random);
    if (HasFatalFailure()) return;
  }
}

// Every write is split in two, so that a reader can meet a half-written superblock.
TEST(Unpublished, GenerationsSurviveDeathInTheMiddleOfAnyWrite) {
  std::mt19937_64 random(12);
  recording_file_system files;
  files.fail_call(0, fault::partial, 0, true);
  chain made(files);
  run(made, 0b1001010u);
  recording_file_system::replay crash(files);
  do {
    if (test::is_left_out(random)) continue;
    expect_in_order(made, crash.count(), crash.after_kill());
    expect_in_order(made, crash.count(), crash.after_power_cut(&random));
    if (HasFatalFailure()) return;
  } while (crash.next());
}

TEST(Unpublished, GenerationsAreSeenByNobodyElse) {
  recording_file_system files;
  chain made(files);
  run(made, 0b010u, 3);
  container_file other = container_file::open(files, path, open_access::write);
  EXPECT_EQ(other.latest().generation(), 3u);
  EXPECT_EQ(observe(other.latest()), made.told[2]);
  EXPECT_EQ(code_of([&] { other.begin(at_once); }), errc::busy);
  EXPECT_EQ(made.held->unpublished_count(), 1u);
  made.publish();
  EXPECT_EQ(made.held->unpublished_count(), 0u);
  EXPECT_EQ(other.latest().generation(), 4u);
  EXPECT_EQ(code_of([&] { other.begin(at_once); }), errc::busy);
  made.end();
  EXPECT_EQ(other.begin(at_once).generation(), 5u);
}

TEST(Unpublished, PublishingNothingWritesNothing) {
  recording_file_system files;
  chain made(files);
  run(made, 0b01u, 1);
  const std::uint64_t calls = files.calls();
  EXPECT_EQ(made.held->publish_written(), 2u);
  EXPECT_EQ(files.calls(), calls);
}

TEST(Unpublished, AGenerationIsWrittenBeforeItIsHandedOver) {
  recording_file_system files;
  chain made(files);
  made.add();
  transaction change = made.begin();
  EXPECT_EQ(code_of([&] { change.hand_over(); }), errc::invalid_argument);
  change.write_unpublished();
  EXPECT_TRUE(change.active());
  made.publish();
  EXPECT_EQ(made.container.latest().generation(), 2u);
  const std::uint64_t calls = files.calls();
  change.hand_over();
  EXPECT_EQ(files.calls(), calls) << "forks wait for the lock that is held then";
  EXPECT_FALSE(change.active());
  EXPECT_EQ(made.held->publish_written(), 3u);
}

// The space of generations that were skipped is used again: the file does not grow with them.
TEST(Unpublished, SkippedGenerationsTakeNoSpace) {
  const auto size_after = [](int generations) {
    recording_file_system files;
    chain made(files);
    run(made, 0b1u, 1);
    for (int i = 0; i < generations; ++i) {
      transaction change = made.begin();
      test::storyteller(change, made.told.back()).chunk("a", 1, static_cast<unsigned>(i));
      change.commit_unpublished();
    }
    EXPECT_EQ(made.held->publish_written(), 2u + static_cast<unsigned>(generations));
    made.end();
    EXPECT_EQ(observe(made.container.latest()), made.told.back());
    EXPECT_EQ(test::unsound(made.container.latest()), "");
    EXPECT_EQ(files.now().at(path).size(), made.container.latest().end_of_file());
    return files.now().at(path).size();
  };
  EXPECT_LE(size_after(200), size_after(20) + 16 * page_bytes);
}

// Two whole transactions run before call number `call` of publishing, for every `call`.
TEST(Unpublished, TransactionsGoOnAtEveryStepOfPublishing) {
  std::mt19937_64 random(7);
  for (std::uint64_t call = 0;; ++call) {
    SCOPED_TRACE("call " + std::to_string(call));
    recording_file_system files;
    chain made(files);
    run(made, 0b001u, 2);
    const std::size_t first = files.changes();
    const std::uint64_t start = files.calls();
    bool ran = false;
    files.before_call = [&] {
      if (ran || files.calls() != start + call) return;
      ran = true;
      made.add();
      made.add();
    };
    made.publish();
    files.before_call = nullptr;
    made.add();
    made.publish();
    made.end();
    EXPECT_EQ(observe(made.container.latest()), made.told.back());
    expect_in_order_after_crashes(made, first, random);
    if (HasFatalFailure() || !ran) return;
  }
}

// One transaction runs before call number `call` of publishing, and begins another one that ends
// after it.
TEST(Unpublished, TransactionsMayEndAfterTheirBaseIsPublished) {
  std::mt19937_64 random(8);
  for (std::uint64_t call = 0;; ++call) {
    SCOPED_TRACE("call " + std::to_string(call));
    recording_file_system files;
    chain made(files);
    run(made, 0b001u, 2);
    const std::size_t first = files.changes();
    const std::uint64_t start = files.calls();
    std::optional<transaction> later;
    files.before_call = [&] {
      if (later || files.calls() != start + call) return;
      made.add();
      later = made.begin();
    };
    made.publish();
    files.before_call = nullptr;
    if (!later) return;
    made.publish();  // the base of `later`
    plain_state state = made.told.back();
    test::tell(3, {*later, state});
    later->commit_unpublished();
    made.told.push_back(state);
    made.add();
    made.publish();
    expect_in_order_after_crashes(made, first, random);
    if (HasFatalFailure()) return;
  }
}

// ---- readers ----------------------------------------------------------------------------------

// A reader opens the container before call number `call` of publishing, and holds what it finds.
TEST(Unpublished, WritersNeverTouchWhatAReaderHolds) {
  for (std::uint64_t call = 0;; ++call) {
    recording_file_system files;
    chain made(files);
    run(made, 0b001u, 2);
    std::optional<container_file> reader;
    std::optional<generation_view> view;
    const std::uint64_t start = files.calls();
    files.before_call = [&] {
      if (files.calls() != start + call || view) return;
      reader = container_file::open(files, path, open_access::read);
      view = reader->latest();
    };
    made.publish();
    files.before_call = nullptr;
    if (!view) break;
    for (int i = 0; i < 5; ++i) {
      made.add();
      if (i % 2 == 1) made.publish();
    }
    ASSERT_EQ(observe(*view), made.told[view->generation() - 1]) << "call " << call;
  }
}

// Transactions and publications run before call number `call` of a reader.
TEST(Unpublished, ReadersPinWholeGenerationsBesideWriters) {
  for (std::uint64_t call = 0;; ++call) {
    recording_file_system files;
    chain made(files);
    run(made, 0b1u, 1);
    container_file reader = container_file::open(files, path, open_access::read);
    made.add();
    made.publish();
    const std::uint64_t start = files.calls();
    bool ran = false;
    files.before_call = [&] {
      if (ran || files.calls() != start + call) return;
      ran = true;
      made.add();
      made.add();
      made.publish();
      made.add();
    };
    const generation_view view = reader.latest();
    files.before_call = nullptr;
    ASSERT_EQ(observe(view), made.told[view.generation() - 1]) << "call " << call;
    for (int i = 0; i < 3; ++i) made.add();
    made.publish();
    made.add();
    ASSERT_EQ(observe(view), made.told[view.generation() - 1]) << "call " << call;
    if (!ran) break;
  }
}

// A reader has taken its generation from a superblock that is going to be overwritten. Publishing
// stops before it does so, and transactions have begun meanwhile.
TEST(Unpublished, TheSlotThatIsTakenCountsUntilItIsReplaced) {
  bool refused = false;
  for (std::uint64_t call = 0;; ++call) {
    recording_file_system files;
    chain made(files);
    run(made, 0b11u, 2);  // generation 3
    container_file reader = container_file::open(files, path, open_access::read);
    const std::uint64_t start = files.calls();
    bool ran = false;
    files.before_call = [&] {
      if (ran || files.calls() != start + call) return;
      ran = true;
      made.add();
      made.publish();  // generation 4 takes the other slot
      made.add();
      const auto stop = [&](std::uint64_t) {  // generation 5 takes that of generation 3
        made.add();
        made.add();
        throw error(errc::io, "a mapping failed");
      };
      refused = code_of([&] { made.held->publish_written(stop); }) == errc::io;
    };
    const generation_view view = reader.latest();
    files.before_call = nullptr;
    ASSERT_EQ(observe(view), made.told[view.generation() - 1]) << "call " << call;
    if (!ran) break;
  }
  EXPECT_TRUE(refused);
}

// An array of the base may outlive the transaction that handed it out.
TEST(Unpublished, ABaseIsPinnedWhileSomebodyReadsIt) {
  recording_file_system files;
  chain made(files);
  made.add();
  made.add();
  std::optional<generation_view> base;
  {
    const transaction change = made.begin();
    base = change.pin_base();
  }
  EXPECT_EQ(base->generation(), 3u);
  EXPECT_EQ(observe(*base), made.told[2]);
  EXPECT_EQ(made.container.pinned(), (std::vector<generation_range>{{3, 3}}));
  for (int i = 0; i < 5; ++i) {
    made.add();
    if (i % 2 == 1) made.publish();
  }
  EXPECT_EQ(observe(*base), made.told[2]);
  made.publish();
  made.end();
  for (int i = 0; i < 2; ++i) {
    plain_state ignored = made.told.back();
    transaction change = made.container.begin(at_once);
    test::storyteller(change, ignored).dense("x", 100'000, 2);
    change.commit();
  }
  EXPECT_EQ(observe(*base), made.told[2]);
}

// commit.8: a transaction has handed out an array of a base that nobody can publish any more.
TEST(Unpublished, ALostBaseKeepsItsBytesWhileSomebodyReadsIt) {
  recording_file_system files;
  chain made(files);
  run(made, 0b1u, 1);
  {
    transaction change = made.begin();
    made.told.push_back(made.told.back());
    test::storyteller(change, made.told.back()).dense("large", 200'000, 1);
    change.commit_unpublished();
  }
  std::optional<generation_view> base;
  {
    const transaction change = made.begin();
    base = change.pin_base();
  }
  const auto lose = [](std::uint64_t) { throw error(errc::io, "a mapping failed"); };
  EXPECT_EQ(code_of([&] { made.held->publish_written(lose); }), errc::io);
  made.end();
  EXPECT_EQ(base->generation(), 3u);
  EXPECT_EQ(observe(*base), made.told[2]);
  EXPECT_EQ(code_of([&] { made.container.begin(at_once); }), errc::io);
  EXPECT_EQ(observe(*base), made.told[2]);
  base.reset();
  EXPECT_EQ(made.container.begin(at_once).generation(), 3u);
  EXPECT_EQ(files.now().at(path).size(), made.container.latest().end_of_file());
}

// ---- transactions of other kinds in between -----------------------------------------------------

TEST(Unpublished, AnAbortLeavesTheGenerationsBefore) {
  std::mt19937_64 random(9);
  recording_file_system files;
  chain made(files);
  run(made, 0b01u, 2);
  {
    transaction aborted = made.begin();
    plain_state ignored = made.told.back();
    test::tell(2, {aborted, ignored});
    test::storyteller(aborted, ignored).dense("large", 200'000, 1);
  }
  EXPECT_EQ(code_of([&] { container_file::open(files, path, open_access::write).begin(at_once); }),
            errc::busy);
  made.add();  // with the number of the aborted one
  made.publish();
  made.end();
  const generation_view newest = made.container.latest();
  EXPECT_EQ(newest.generation(), 4u);
  EXPECT_EQ(observe(newest), made.told.back());
  EXPECT_EQ(test::unsound(newest), "");
  EXPECT_EQ(files.now().at(path).size(), newest.end_of_file());
  expect_in_order_after_crashes(made, 0, random);
}

// A commit that waits makes all generations before it durable, and releases the lock.
TEST(Unpublished, ACommitPublishesWhatWasBefore) {
  std::mt19937_64 random(10);
  recording_file_system files;
  chain made(files);
  run(made, 0b01u, 3);
  {
    transaction change = made.begin();
    made.told.push_back(made.told.back());
    test::tell(3, {change, made.told.back()});
    made.published.push_back({5, files.changes(), SIZE_MAX});
    EXPECT_EQ(change.commit(), 5u);
    made.published.back().ended = files.changes();
  }
  EXPECT_EQ(made.held->unpublished_count(), 0u);
  expect_in_order_after_crashes(made, 0, random);
  made.end();
  EXPECT_EQ(observe(made.container.latest()), made.told.back());
  made.add();
  made.publish();
  EXPECT_EQ(observe(made.container.latest()), made.told.back());
}

// A copy of what readers see may lack generations that are published before it takes the name.
TEST(Unpublished, ACopyThatMayLackCommitsTakesNoName) {
  const std::string other = "/box/other.shale";
  recording_file_system files;
  container_file::create(files, other, {.id = uuid{}});
  chain made(files);
  made.add();
  {
    transaction hold = made.begin();
    EXPECT_EQ(made.container.latest().generation(), 1u);  // what the caller would copy
    made.publish();
    EXPECT_EQ(code_of([&] { hold.replace_by(other); }), errc::busy);
  }
  EXPECT_EQ(made.container.latest().generation(), 2u);
  {
    transaction hold = made.begin();
    EXPECT_EQ(made.container.latest().generation(), 2u);
    EXPECT_EQ(code_of([&] { hold.replace_by(other); }), errc{});
  }
  made.end();
  EXPECT_EQ(container_file::open(files, path, open_access::read).latest().generation(), 1u);
}

// `end` after a commit must leave the live page alone: it may have another writer's mark.
TEST(Unpublished, TheEndAfterACommitTouchesNothing) {
  recording_file_system files;
  chain made(files);
  made.add();
  {
    transaction change = made.begin();
    change.commit();
  }
  container_file other = container_file::open(files, path, open_access::write);
  transaction change = other.begin(at_once);
  made.end();
  EXPECT_EQ(change.commit(), 4u);
}

TEST(Unpublished, WriterSeesWhoWaits) {
  recording_file_system files;
  chain made(files);
  made.add();
  EXPECT_FALSE(made.held->is_awaited());
  std::unique_ptr<open_file> waiting;
  ASSERT_GE(files.open(path, open_access::write, waiting), 0);
  ASSERT_GE(waiting->try_lock(queue_lock, lock_mode::exclusive), 0);
  EXPECT_TRUE(made.held->is_awaited());
  waiting.reset();
  EXPECT_FALSE(made.held->is_awaited());
}

TEST(Unpublished, GenerationsAreLimitedInNumber) {
  recording_file_system files;
  chain made(files);
  for (std::uint64_t i = 0; i < unpublished_max; ++i) {
    transaction change = made.begin();
    EXPECT_EQ(change.commit_unpublished(), i + 2);
    made.held = change.writer_owner();
  }
  EXPECT_EQ(code_of([&] { made.begin(); }), errc::busy);
  EXPECT_EQ(made.held->publish_written(), unpublished_max + 1);
  EXPECT_EQ(made.begin().generation(), unpublished_max + 2);
}

// commit.1: a reader may hold a generation that was skipped to, and lost.
TEST(Unpublished, WritersRefuseBelowALostGenerationThatAReaderHolds) {
  recording_file_system files;
  {
    chain made(files);
    run(made, 0b0001u, 4);
    files.fail_sync(1);  // the superblock is in the cache, but may not be on the device
    EXPECT_EQ(code_of([&] { made.held->publish_written(); }), errc::io);
    files.fail_sync(1'000'000);
  }
  container_file reader_file = container_file::open(files, path, open_access::read);
  std::optional<generation_view> reader = reader_file.latest();
  EXPECT_EQ(reader->generation(), 5u);
  files.evict_lost();
  container_file again = container_file::open(files, path, open_access::write);
  EXPECT_EQ(again.latest().generation(), 2u);
  try {
    again.begin(at_once);
    FAIL() << "a generation below one that is read was given away";
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::io);
    EXPECT_NE(std::string(refused.what()).find("close the reader and try again"),
              std::string::npos);
  }
  reader.reset();
  EXPECT_EQ(again.begin(at_once).generation(), 3u);
}

// ---- failures ---------------------------------------------------------------------------------

TEST(Unpublished, AFailedSyncStopsAllThatFollows) {
  for (const int good_syncs : {0, 1}) {
    SCOPED_TRACE(good_syncs);
    recording_file_system files;
    chain made(files);
    run(made, 0b01u, 2);
    transaction going_on = made.begin();
    files.fail_sync(good_syncs);
    EXPECT_EQ(code_of([&] { made.held->publish_written(); }), errc::io);
    files.fail_sync(1'000'000);
    const std::size_t syncs = files.syncs().size();
    EXPECT_EQ(code_of([&] { made.held->publish_written(); }), errc::io);
    EXPECT_EQ(files.syncs().size(), syncs) << "a failed sync was repeated";
    EXPECT_EQ(code_of([&] { going_on.commit_unpublished(); }), errc::io);
    EXPECT_FALSE(going_on.active());
    EXPECT_EQ(code_of([&] { made.begin(); }), errc::io);
    EXPECT_TRUE(made.container.poisoned());
    EXPECT_EQ(code_of([&] { made.container.begin(at_once); }), errc::io);
    made.end();
    const auto seen = look(files.after_power_cut(nullptr), path);
    EXPECT_EQ(seen.generation, 2u);
    EXPECT_EQ(seen.state, made.told[1]);
    container_file again = container_file::open(files, path, open_access::write);
    EXPECT_GE(again.begin(at_once).generation(), 3u);
  }
}

// What the caller finds between the two syncs poisons nothing, but nobody may build on it.
TEST(Unpublished, AnExceptionBetweenSyncAndSuperblockStopsAllThatFollows) {
  recording_file_system files;
  chain made(files);
  run(made, 0b01u, 2);
  transaction going_on = made.begin();
  std::uint64_t told = 0;
  const auto lose = [&](std::uint64_t generation) {
    told = generation;
    throw error(errc::io, "a mapping failed");
  };
  EXPECT_EQ(code_of([&] { made.held->publish_written(lose); }), errc::io);
  EXPECT_EQ(told, 3u);
  try {
    going_on.commit();
    FAIL() << "built on what was not published";
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::io);
    EXPECT_NE(std::string(refused.what()).find("a mapping failed"), std::string::npos);
  }
  EXPECT_EQ(code_of([&] { made.begin(); }), errc::io);
  made.end();
  EXPECT_FALSE(made.container.poisoned());
  EXPECT_EQ(observe(made.container.latest()), made.told[1]);
  EXPECT_EQ(made.container.begin(at_once).generation(), 3u);
}

TEST(Unpublished, PublishingReportsThatMemoryIsExhausted) {
  recording_file_system files;
  chain made(files);
  run(made, 0b01u, 2);
  transaction going_on = made.begin();
  const auto lose = [](std::uint64_t) { throw std::bad_alloc(); };
  EXPECT_EQ(code_of([&] { made.held->publish_written(lose); }), errc::out_of_memory);
  EXPECT_EQ(code_of([&] { going_on.commit_unpublished(); }), errc::out_of_memory);
  EXPECT_EQ(code_of([&] { made.begin(); }), errc::out_of_memory);
  made.end();
  EXPECT_EQ(made.container.begin(at_once).generation(), 3u);
}

// commit.9, also for generations after the first one that was published.
TEST(Unpublished, AFileThatSomebodyHasWrittenOverIsNotPublishedTo) {
  recording_file_system files;
  chain made(files);
  run(made, 0b01u, 2);
  {
    std::unique_ptr<open_file> stranger;
    ASSERT_GE(files.open(path, open_access::write, stranger), 0);
    const std::byte none[mark_bytes] = {};
    ASSERT_GE(stranger->pwrite(none, mark_offset), 0);
  }
  EXPECT_EQ(code_of([&] { made.held->publish_written(); }), errc::io);
  EXPECT_EQ(made.container.latest().generation(), 2u);
}

// commit.3: another process cuts off a generation that waits.
TEST(Unpublished, AFileThatHasBecomeShorterIsNotPublishedTo) {
  recording_file_system files;
  chain made(files);
  run(made, 0b1u, 1);
  const std::uint64_t end = made.container.latest().end_of_file();
  {
    transaction change = made.begin();
    plain_state lost = made.told.back();
    test::storyteller(change, lost).dense("large", 200'000, 2);
    change.commit_unpublished();
  }
  {
    std::unique_ptr<open_file> stranger;
    ASSERT_GE(files.open(path, open_access::write, stranger), 0);
    ASSERT_GE(stranger->truncate(end), 0);
  }
  const std::string text = test::text_of([&] { made.held->publish_written(); });
  EXPECT_NE(text.find("the file has become shorter"), std::string::npos) << text;
  EXPECT_EQ(code_of([&] { made.begin(); }), errc::io);
  made.end();
  EXPECT_FALSE(made.container.poisoned());
  EXPECT_EQ(observe(made.container.latest()), made.told.back());
  EXPECT_EQ(made.container.begin(at_once).generation(), 3u);
}

// Another container takes the name before each call of publishing in turn.
TEST(Unpublished, AFileThatLostItsNameIsReported) {
  for (std::uint64_t call = 0;; ++call) {
    SCOPED_TRACE("call " + std::to_string(call));
    recording_file_system files;
    container_file::create(files, "/box/other.shale", {.id = uuid{}});
    chain made(files);
    run(made, 0b01u, 2);
    bool renamed = false;
    const std::uint64_t start = files.calls();
    files.before_call = [&] {
      if (renamed || files.calls() != start + call) return;
      renamed = true;
      files.rename("/box/other.shale", path);
    };
    const errc code = code_of([&] { made.held->publish_written(); });
    files.before_call = nullptr;
    EXPECT_EQ(code, renamed ? errc::io : errc{});
    EXPECT_EQ(code_of([&] { made.begin(); }), renamed ? errc::io : errc{});
    if (!renamed) break;
  }
}

// A transaction takes space at the end of the file, and neither writes nor names it.
TEST(Unpublished, GenerationsNeedNoBytesAtTheirEnd) {
  recording_file_system files;
  chain made(files);
  made.add();
  {
    transaction change = made.begin();
    made.told.push_back(made.told.back());
    test::storyteller(change, made.told.back()).create_chunked("b");
    change.allocate_chunk(1'000'000);
    change.commit_unpublished();
  }
  made.publish();
  const sighting seen = look(files.after_power_cut(nullptr), path);
  EXPECT_EQ(seen.generation, 3u);
  EXPECT_EQ(seen.state, made.told.back());
}

// Every call of a history fails once. What was reported before stays, in order.
TEST(Unpublished, AFailingCallLeavesWhatWasReported) {
  std::mt19937_64 random(6);
  bool failed = true;
  int stopped = 0;
  for (std::uint64_t call = 0; failed; ++call) {
    SCOPED_TRACE("call " + std::to_string(call));
    recording_file_system files;
    {
      chain made(files);
      files.fail_call(files.calls() + call, fault::error, EIO);
      errc code{};
      try {
        run(made, 0b010010u, 6);
        made.publish();
      } catch (const error& failure) {
        code = failure.code();
      }
      failed = !files.failed_call().empty();
      files.fail_call(UINT64_MAX, fault::none);
      stopped += code != errc{};
      EXPECT_TRUE(code == errc{} || code == errc::io) << files.failed_call();
      const std::size_t count = files.changes();
      for (const auto& image :
           {files.now(), files.after_power_cut(nullptr), files.after_power_cut(&random)})
        expect_in_order(made, count, image);
    }
    ASSERT_EQ(files.open_files(), 0);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(stopped, 60);
}

// What a failed writer may have left in the cache is removed before space is written for the first
// time; later transactions of the same writer know that.
TEST(Unpublished, SpaceLeavesTheCacheOnceForEachWriter) {
  recording_file_system files;
  chain c(files);
  plain_state told;
  int notes = 0;
  const auto add = [&](int generations) {
    for (int k = 0; k < generations; ++k) {
      transaction change = c.begin();
      test::storyteller story(change, told);
      if (!told.contains("a")) story.create_chunked("a");
      story.note("a", "note", std::to_string(++notes));
      change.commit_unpublished();
      c.held = change.writer_owner();
    }
  };
  add(40);
  c.held->publish_written();
  c.end();
  std::uint64_t before = files.drops;
  add(40);
  EXPECT_GT(files.drops, before);
  before = files.drops;
  add(10);
  EXPECT_EQ(files.drops, before);
  c.held->publish_written();
  c.end();
}

}  // namespace
}  // namespace shale::format
