// Tests what an executor does for its calls: exceptions, cancellation, progress, statistics,
// budgets and pools.
#include "shale/executor.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>

#include "parallel/executor/executor_state.hpp"
#include "parallel/executor/tile_loop.hpp"
#include "parallel/executor/worker_scratch.hpp"
#include "parallel/windows/window_memory.hpp"
#include "shale/apply.hpp"
#include "shale/for_each.hpp"
#include "shale/memory_pool.hpp"
#include "shale/reduce.hpp"
#include "support/failures.hpp"
#include "support/random_tensors.hpp"
#include "support/run_on.hpp"

namespace shale {
namespace {

using test::code_of;

// loop.3
TEST(Executor, ExceptionsReachTheCallerAndTheExecutorLivesOn) {
  for (const int threads : {1, 4}) {
    executor on({.threads = threads});
    const executor::scope within(on);
    const tensor x = tensor::zeros({1 << 18}, dtype::float32);
    std::atomic<int> calls = 0;
    EXPECT_THROW(apply(
                     [&](float&) {
                       if (++calls == 70000) throw std::domain_error("enough");
                     },
                     x),
                 std::domain_error);
    EXPECT_LT(calls, 1 << 18);
    apply([](float& e) { e = 1; }, x);
    EXPECT_EQ(x.at({-1}), scalar(1.0));
  }
}

// loop.3
TEST(Executor, CancelStopsRunningAndLaterCallsUntilResume) {
  for (const int threads : {1, 3}) {
    executor on({.threads = threads});
    const executor::scope within(on);
    const tensor x = tensor::zeros({1 << 18}, dtype::int32);
    const auto mark = [&](std::int32_t& e) {
      e = 1;
      on.cancel();
    };
    EXPECT_EQ(code_of([&] { apply(mark, x); }), errc::cancelled);
    const auto add = [](int& to, std::int32_t e) { to += e; };
    EXPECT_LT(test::run_on(executor::shared(), [&] { return reduce(x, 0, add, add); }), 1 << 18);
    EXPECT_TRUE(on.cancelled());
    EXPECT_EQ(code_of([&] { apply(mark, x); }), errc::cancelled);
    on.resume();
    apply([](std::int32_t& e) { e = 2; }, x);
    EXPECT_EQ(x.at({0}), scalar(2));
  }
}

TEST(Executor, CancelEndsACallInIndexOrderInsideALongRow) {
  executor on({.threads = 2});
  const executor::scope within(on);
  const tensor x = tensor::zeros({1 << 18}, dtype::int32);
  index_t visited = 0;
  const auto mark = [&](std::int32_t& e) {
    e = static_cast<std::int32_t>(visited++);
    on.cancel();
  };
  EXPECT_EQ(code_of([&] { apply_in_order(mark, x); }), errc::cancelled);
  EXPECT_LT(visited, x.size());
  EXPECT_EQ(code_of([&] { apply_in_order(mark, x); }), errc::cancelled);
  on.resume();
  visited = 0;
  apply_in_order([&](std::int32_t& e) { e = static_cast<std::int32_t>(visited++); }, x);
  for (index_t i = 0; i < x.size(); i += 4095) ASSERT_EQ(x.at({i}), scalar(static_cast<int>(i)));
}

// loop.1: a tile below the highest one that has begun may be missing only if another worker has
// just claimed it.
TEST(Executor, ClaimsTilesInAscendingOrder) {
  for (const int threads : {1, 4}) {
    executor on({.threads = threads});
    std::mutex mutex;
    index_t begun = 0, highest = -1;
    parallel::parallel_for_tiles(on, 5000, [&](index_t tile, int) {
      const std::lock_guard lock(mutex);
      ++begun;
      highest = std::max(highest, tile);
      EXPECT_LT(highest + 1 - begun, threads);
    });
    EXPECT_EQ(begun, 5000);
  }
}

class recorded_progress final : public progress_sink {
 public:
  void advance(std::uint64_t done_bytes, std::uint64_t total_bytes) override {
    EXPECT_FALSE(inside.exchange(true)) << "called concurrently";
    done.push_back(done_bytes);
    total = total_bytes;
    inside = false;
  }
  std::vector<std::uint64_t> done;
  std::uint64_t total = 0;
  std::atomic<bool> inside = false;
};

TEST(Executor, ReportsProgressUpToTheWhole) {
  for (const int threads : {1, 3}) {
    recorded_progress seen;
    executor on({.threads = threads, .progress = &seen});
    const executor::scope within(on);
    const tensor x = tensor::zeros({1 << 20}, dtype::int32);
    const tensor y = tensor::zeros({1 << 20}, dtype::int8);
    apply([](std::int32_t& e, std::int8_t f) { e += f; }, x, y);
    ASSERT_FALSE(seen.done.empty());
    EXPECT_EQ(seen.total, 5u << 20);
    EXPECT_TRUE(std::is_sorted(seen.done.begin(), seen.done.end()));
    EXPECT_EQ(seen.done.back(), seen.total);
    EXPECT_LE(seen.done.size(), 300u);
    // While the sink is busy with one helper's report, reports of others are dropped. So only a
    // single thread reports every part.
    if (threads == 1) {
      EXPECT_GT(seen.done.size(), 4u);
    }
  }
}

TEST(Executor, CountsCallsAndBytes) {
  executor on({.threads = 2});
  const executor::scope within(on);
  const tensor x = tensor::zeros({1000, 30}, dtype::int32);
  const tensor y = tensor::zeros({30}, dtype::int8);
  apply([](std::int32_t& e, std::int8_t f) { e += f; }, x, y);
  auto counted = on.statistics();
  EXPECT_EQ(counted.passes, 1u);
  EXPECT_EQ(counted.bytes_written, 120000u);
  EXPECT_EQ(counted.bytes_read, 30u);
  EXPECT_GE(counted.tiles, 1u);
  for_each_lane<std::int32_t>(
      0, [](lane<std::int32_t>) {}, x);
  EXPECT_EQ(on.statistics().bytes_written, 240000u);
  apply_in_order([](std::int32_t& e, std::int8_t f) { e += f; }, x, y);
  counted = on.statistics();
  EXPECT_EQ(counted.passes, 3u);
  EXPECT_EQ(counted.bytes_written, 360000u);
  EXPECT_EQ(counted.bytes_read, 60u);
}

TEST(Executor, ScopesBindTheThreadAndItsHelpers) {
  EXPECT_EQ(&executor::current(), &executor::shared());
  executor outer({.threads = 3, .memory_bytes = 1 << 20});
  executor inner({.threads = 2, .memory_bytes = 1 << 21});
  const auto budget = [] { return executor::current().memory_bytes(); };
  const tensor x = tensor::zeros({1 << 18}, dtype::int32);
  {
    const executor::scope within(outer);
    std::atomic<int> others = 0;
    const auto require_outer = [&](std::int32_t&) { others += budget() != outer.memory_bytes(); };
    apply(require_outer, x);
    EXPECT_EQ(others, 0);
    EXPECT_EQ(outer.statistics().passes, 1u);
    {
      const executor::scope nested(inner);
      EXPECT_EQ(budget(), inner.memory_bytes());
      apply([](std::int32_t& e) { e = 1; }, x);
    }
    EXPECT_EQ(inner.statistics().passes, 1u);
    EXPECT_EQ(outer.statistics().passes, 1u);
    EXPECT_EQ(budget(), outer.memory_bytes());
    // A new thread of the caller is bound to no executor.
    std::thread([] { EXPECT_EQ(&executor::current(), &executor::shared()); }).join();
    EXPECT_THROW(apply([](std::int32_t&) { throw 5; }, x), int);
    EXPECT_EQ(budget(), outer.memory_bytes());
  }
  EXPECT_EQ(&executor::current(), &executor::shared());
}

// A scope keeps the state of an executor that was a temporary.
TEST(Executor, ScopesOfTemporariesStayBound) {
  memory_pool other;
  const executor on({.threads = 2});
  const executor::scope within(on.with_pool(other));
  EXPECT_EQ(&executor::current().pool(), &other);
  EXPECT_EQ(executor::current().threads(), on.threads());
}

TEST(Executor, TakesItsMemoryFromAnotherPoolForACall) {
  memory_pool usual;
  memory_pool other;
  executor on({.threads = 2, .memory_bytes = 100 << 20, .pool = &usual});
  executor mine = on.with_pool(other);
  const executor::scope within(mine);
  EXPECT_EQ(&on.pool(), &usual);
  EXPECT_EQ(&mine.pool(), &other);
  EXPECT_EQ(mine.memory_bytes(), on.memory_bytes());
  const tensor values = tensor::zeros({300, 300}, dtype::float64);
  // The call reads elements that it writes, so it makes a copy.
  apply_into(
      values, [](double e) { return 2 * e; }, values.swapaxes(0, 1));
  EXPECT_GE(other.statistics().peak_live_bytes, values.size_bytes());
  EXPECT_EQ(usual.statistics().peak_live_bytes, 0u);
  EXPECT_EQ(on.statistics().passes, 1u) << "one executor";
  on.cancel();
  EXPECT_TRUE(mine.cancelled());
}

// Windows and temporaries share the executor's budget and its pool's limit.
TEST(Executor, SharesItsMemoryAmongCallsAndPool) {
  constexpr std::size_t mib = 1 << 20;
  memory_pool pool({.limit_bytes = 80 * mib});
  executor on({.threads = 1, .memory_bytes = 100 * mib, .pool = &pool});
  // The pool gives back idle memory.
  auto* const block = pool.allocate(70 * mib);
  pool.deallocate(block, 70 * mib);
  EXPECT_GE(pool.statistics().idle_bytes, 70 * mib);
  {
    const parallel::window_memory first(on, 50 * mib);
    EXPECT_EQ(first.bytes(), 50 * mib);
    EXPECT_EQ(pool.statistics().idle_bytes, 0u);
    EXPECT_EQ(pool.statistics().reserved_bytes, 50 * mib);
    const parallel::window_memory second(on, 50 * mib);
    EXPECT_EQ(second.bytes(), 30 * mib) << "the pool's limit";
    EXPECT_EQ(parallel::state_of(on).tokens.held_bytes(), 80 * mib);
    EXPECT_EQ(on.statistics().scratch_bytes_peak, 80 * mib) << "what the pool refused is not held";
    pool.set_limit_bytes(0);
    const parallel::window_memory third(on, 50 * mib);
    EXPECT_EQ(third.bytes(), 20 * mib) << "the executor's budget";
    EXPECT_EQ(parallel::window_memory(on, 50 * mib).bytes(), 0u);
  }
  EXPECT_EQ(parallel::state_of(on).tokens.held_bytes(), 0u);
  EXPECT_EQ(pool.statistics().reserved_bytes, 0u);
}

// Decision 0002: fewer workers have scratch memory if it would exceed half of the budget.
TEST(Executor, GivesFewerWorkersScratchThatIsLarge) {
  constexpr std::size_t mib = 1 << 20;
  const std::pair<std::size_t, int> cases[] = {
      {0, 8}, {mib / 8, 8}, {4 * mib, 2}, {9 * mib, 1}, {90 * mib, 1}};
  for (const auto& [scratch_bytes, workers] : cases) {
    executor on({.threads = 8, .memory_bytes = 16 * mib});
    const parallel::worker_scratch scratch(scratch_bytes, 100, on);
    EXPECT_EQ(scratch.workers(), workers);
    EXPECT_EQ(on.statistics().scratch_bytes_peak,
              scratch_bytes * static_cast<std::size_t>(workers));
  }
}

TEST(Executor, GivesNoScratchForWorkersWithoutWork) {
  executor on({.threads = 8, .memory_bytes = 1 << 20});
  EXPECT_EQ(parallel::worker_scratch(1000, 3, on).workers(), 3);
  EXPECT_EQ(on.statistics().scratch_bytes_peak, 3000U);
  EXPECT_EQ(parallel::worker_scratch(1000, 0, on).workers(), 1) << "of an empty loop";
}

TEST(Executor, LeavesTheCallersSignalMaskAlone) {
  sigset_t mask, before, after;
  sigemptyset(&mask);
  sigaddset(&mask, SIGBUS);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &mask, &before), 0);
  executor on({.threads = 2});
  std::atomic<int> arrived = 0;
  std::atomic<int> blocked = 0;
  parallel::parallel_for_tiles(on, 2, [&](index_t, int) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
    sigset_t here;
    pthread_sigmask(SIG_BLOCK, nullptr, &here);
    blocked += sigismember(&here, SIGBUS);
  });
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, &before, &after), 0);
  EXPECT_EQ(sigismember(&after, SIGBUS), 1) << "the caller's";
  EXPECT_EQ(blocked, 1) << "the other thread's must let it through";
}

TEST(Executor, NestedCallsRunInTheSameThreads) {
  executor on({.threads = 3});
  const executor::scope within(on);
  const tensor outer = tensor::zeros({1 << 16}, dtype::int32);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  apply(
      [&](std::int32_t& e) {
        const auto at = &e - outer.elements<std::int32_t>().data();
        if (at % 8192 != 0) return;
        const tensor inner = tensor::zeros({1 << 16}, dtype::int32);
        apply(
            [&](std::int32_t& x) {
              x = 1;
              if ((&x - inner.elements<std::int32_t>().data()) % 4096 != 0) return;
              const std::lock_guard lock(mutex);
              threads.insert(std::this_thread::get_id());
            },
            inner);
        e = reduce(
            inner, 0, [](int& to, std::int32_t x) { to += x; },
            [](int& to, int other) { to += other; });
      },
      outer);
  EXPECT_LE(threads.size(), 3u);
  for (index_t at = 0; at < 1 << 16; at += 8192) EXPECT_EQ(outer.at({at}).as<double>(), 1 << 16);
}

#if defined(__SANITIZE_THREAD__)
// Two tiles run at once and touch one place. The suppressions for oneTBB must not hide this race.
TEST(ThreadSanitizer, SeesRacesBetweenTiles) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto race = [] {
    executor on({.threads = 2});
    std::atomic<int> arrived = 0;
    int shared = 0;
    parallel::parallel_for_tiles(on, 2, [&](index_t tile, int) {
      arrived.fetch_add(1, std::memory_order_relaxed);
      while (arrived.load(std::memory_order_relaxed) < 2) std::this_thread::yield();
      // ThreadSanitizer misses accesses at the very same moment. Sleeping does not order them.
      if (tile == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ++shared;
    });
    std::exit(shared == 2 ? 0 : 1);
  };
  EXPECT_EXIT(race(), testing::ExitedWithCode(66), "data race");
}
#endif

}  // namespace
}  // namespace shale
