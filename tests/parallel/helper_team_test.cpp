#include "parallel/threads/helper_team.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "parallel/executor/executor_state.hpp"
#include "parallel/executor/tile_loop.hpp"
#include "parallel/pass/pass_loop.hpp"
#include "shale/apply.hpp"
#include "shale/for_each.hpp"
#include "shale/reduce.hpp"
#include "support/bounded.hpp"
#include "support/failures.hpp"

namespace shale {
namespace {

using test::expect_to_end;

// A tensor of ones with several tiles.
tensor some_ones() {
  const tensor made = tensor::zeros({1 << 18}, dtype::int32);
  for (auto& each : made.elements<std::int32_t>()) each = 1;
  return made;
}

std::int64_t total(const tensor& values, executor& on) {
  const executor::scope within(on);
  return reduce(
      values, std::int64_t{0}, [](std::int64_t& to, std::int32_t x) { to += x; },
      [](std::int64_t& to, std::int64_t other) { to += other; });
}

// Threads wait at the gate until it is opened.
class gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
    --waiting_;
  }
  void await(int waiting) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ >= waiting; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool open_ = false;
};

// ---- waiting ------------------------------------------------------------------------------------

// loop.4
TEST(HelperTeam, ACallEndsWhileKernelsHoldAllThreads) {
  for (const int threads : {2, 3, 8})
    expect_to_end([threads] {
      executor on({.threads = threads});
      gate closed;
      std::thread other(
          [&] { parallel::parallel_for_tiles(on, 64, [&](index_t, int) { closed.pass(); }); });
      closed.await(threads);
      const tensor ones = some_ones();
      for (int round = 0; round < 20; ++round) EXPECT_EQ(total(ones, on), ones.size());
      closed.open();
      other.join();
    });
}

// loop.4, team.5: the same with the shared executor. Each of two threads holds a lock that the
// other's kernels wait for.
TEST(HelperTeam, OwnersOfLocksThatKernelsWaitForCallTheSameExecutor) {
  expect_to_end([] {
    const tensor ones = some_ones();
    for (int round = 0; round < 50; ++round) {
      std::mutex mutex;
      std::unique_lock held(mutex);
      std::atomic<int> begun = 0;
      std::thread other([&] {
        parallel::parallel_for_tiles(executor::shared(), 16, [&](index_t, int) {
          ++begun;
          const std::lock_guard lock(mutex);
        });
      });
      while (begun < 1) std::this_thread::yield();
      EXPECT_EQ(total(ones, executor::shared()), ones.size());
      held.unlock();
      other.join();
    }
  });
}

// loop.4
TEST(HelperTeam, KernelsOfTwoExecutorsCallEachOther) {
  for (int threads = 2; threads <= 8; ++threads)
    expect_to_end([threads] {
      executor a({.threads = threads});
      executor b({.threads = threads});
      const tensor ones = some_ones();
      for (int round = 0; round < (test::instrumented ? 2 : 10); ++round) {
        std::atomic<std::int64_t> sum = 0;
        const auto call = [&](executor& outer, executor& inner) {
          parallel::parallel_for_tiles(outer, 24, [&](index_t, int) { sum += total(ones, inner); });
        };
        std::thread other([&] { call(a, b); });
        call(b, a);
        other.join();
        EXPECT_EQ(sum, 48 * ones.size());
      }
    });
}

std::size_t threads_of_process() {
  const std::filesystem::directory_iterator threads("/proc/self/task"), end;
  return static_cast<std::size_t>(std::distance(threads, end));
}

TEST(HelperTeam, ExecutorsOneAfterTheOtherShareTheirHelpers) {
  expect_to_end([] {
    const tensor ones = some_ones();
    for (int round = 0; round < 300; ++round) {
      executor on({.threads = 4});
      ASSERT_EQ(total(ones, on), ones.size());
    }
    EXPECT_LE(threads_of_process(), 16U);
  });
}

// A ring of executors, whose kernels call the next one, from as many threads.
TEST(HelperTeam, KernelsOfARingOfExecutorsCallTheNext) {
  expect_to_end([] {
    std::array<std::unique_ptr<executor>, 4> ring;
    for (auto& each : ring) each = std::make_unique<executor>(executor_options{.threads = 3});
    std::atomic<int> leaves = 0;
    const auto descend = [&](auto&& self, std::size_t at, int depth) -> void {
      parallel::parallel_for_tiles(*ring[at % ring.size()], 4, [&](index_t, int) {
        if (depth == 0) ++leaves;
        else self(self, at + 1, depth - 1);
      });
    };
    std::vector<std::thread> callers;
    for (std::size_t k = 0; k < ring.size(); ++k)
      callers.emplace_back([&, k] { descend(descend, k, 4); });
    for (auto& each : callers) each.join();
    EXPECT_EQ(leaves, 4 * 4 * 4 * 4 * 4 * 4);
  });
}

// ---- numbers and limits -------------------------------------------------------------------------

// team.3: tiles that run at once have different workers, below the executor's threads.
TEST(HelperTeam, WorkersOfACallHaveNumbersOfTheirOwn) {
  executor on({.threads = 5});
  const auto check = [&] {
    std::array<std::atomic<int>, 5> busy{};
    parallel::parallel_for_tiles(on, 40, [&](index_t tile, int worker) {
      ASSERT_GE(worker, 0);
      ASSERT_LT(worker, 5);
      EXPECT_EQ(busy[static_cast<std::size_t>(worker)].fetch_add(1), 0) << worker;
      if (tile % 8 == 0) parallel::parallel_for_tiles(on, 6, [](index_t, int) {});
      std::this_thread::yield();
      busy[static_cast<std::size_t>(worker)].fetch_sub(1);
    });
  };
  std::vector<std::thread> callers;
  for (int k = 0; k < 3; ++k)
    callers.emplace_back([&] {
      for (int round = 0; round < 100; ++round) check();
    });
  for (auto& each : callers) each.join();
}

// team.1: callers share at most threads - 1 helpers, also in nested calls.
TEST(HelperTeam, AtMostItsThreadsHelpAllCallsTogether) {
  constexpr int threads = 4;
  constexpr int callers = 3;
  executor on({.threads = threads});
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  const auto count = [&](auto&& body) {
    const int now = ++running;
    int seen = most;
    while (seen < now && !most.compare_exchange_weak(seen, now)) {
    }
    body();
    --running;
  };
  // In nested calls, only the innermost tile of a thread counts as running.
  const auto leaf = [&] {
    parallel::parallel_for_tiles(on, 6,
                                 [&](index_t, int) { count([] { std::this_thread::yield(); }); });
  };
  std::vector<std::thread> all;
  for (int k = 0; k < callers; ++k)
    all.emplace_back([&] {
      for (int round = 0; round < 30; ++round)
        parallel::parallel_for_tiles(on, 10, [&](index_t, int) { leaf(); });
    });
  for (auto& each : all) each.join();
  EXPECT_LE(most, threads - 1 + callers);
}

// loop.4 only says that callers do not wait. This test shows that helpers do join.
TEST(HelperTeam, HelpersJoinUpToTheExecutorsThreads) {
  expect_to_end([] {
    for (const int threads : {2, 3, 9, 40}) {
      executor on({.threads = threads});
      std::atomic<int> inside = 0;
      parallel::parallel_for_tiles(on, threads, [&](index_t, int) {
        ++inside;
        while (inside < threads) std::this_thread::yield();
      });
      EXPECT_EQ(inside, threads);
    }
  });
}

// An executor has as many threads as requested, also beyond oneTBB's own limit, and prints nothing
// to standard error. Otherwise it throws.
// Whether helpers join a pass over 64 Ki elements in memory, of that many additions each. Each unit
// waits so long for them.
bool have_helped(index_t additions, int milliseconds) {
  const tensor values = tensor::zeros({64, 1024}, dtype::float32);
  executor on({.threads = 2});
  parallel::pass_loop loop({{values, false}}, {.additions = additions}, on);
  std::atomic<bool> helped = false;
  loop.run([&](const parallel::unit& here) {
    if (here.worker != 0) helped = true;
    for (int waits = 0; waits < milliseconds && !helped; ++waits)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  return helped;
}

TEST(HelperTeam, IsNotWokenForShortWork) {
  EXPECT_FALSE(have_helped(1, 20));
  EXPECT_FALSE(have_helped(10, 20));
  EXPECT_TRUE(have_helped(11, 5000));
  EXPECT_TRUE(have_helped(0, 5000));  // of an unknown cost
}

TEST(HelperTeam, AnExecutorHasTheThreadsThatItSays) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto meet = [] {
    ::alarm(120);
    executor on({.threads = 300});
    std::atomic<int> inside = 0;
    parallel::parallel_for_tiles(on, 300, [&](index_t, int) {
      ++inside;
      while (inside < 300) std::this_thread::yield();
    });
    std::_Exit(on.threads() == 300 ? 0 : 1);
  };
  EXPECT_EXIT(meet(), testing::ExitedWithCode(0), "^$");
  // oneTBB is already running with its own limit before more threads are requested.
  const auto join = [] {
    ::alarm(120);
    executor few({.threads = 2});
    parallel::parallel_for_tiles(few, 100, [](index_t, int) { std::this_thread::yield(); });
    executor on({.threads = executor::threads_max});
    const int threads = on.threads();
    std::atomic<int> inside = 0;
    parallel::parallel_for_tiles(on, threads, [&](index_t, int) {
      ++inside;
      while (inside < threads) std::this_thread::yield();
    });
    std::_Exit(threads > 2 ? 0 : 1);
  };
  EXPECT_EXIT(join(), testing::ExitedWithCode(0), "^$");
}

TEST(HelperTeam, ThreadsBeyondTheLimitAreRefused) {
  for (const int threads : {-1, std::numeric_limits<int>::min(), executor::threads_max + 1,
                            std::numeric_limits<int>::max()}) {
    EXPECT_EQ(test::code_of([&] { executor on({.threads = threads}); }), errc::invalid_argument);
    EXPECT_NE(
        test::text_of([&] { executor on({.threads = threads}); }).find(std::to_string(threads)),
        std::string::npos);
  }
  EXPECT_GE(executor().threads(), 1);
}

// team.4: calls whose helpers cannot start leave no tasks behind.
TEST(HelperTeam, CallsLeaveNoTasksBehindWhereNoneCanStart) {
  expect_to_end([] {
    constexpr int threads = 3;
    executor on({.threads = threads});
    gate closed;
    std::thread other(
        [&] { parallel::parallel_for_tiles(on, 64, [&](index_t, int) { closed.pass(); }); });
    closed.await(threads);
    for (int round = 0; round < 1000; ++round) {
      parallel::parallel_for_tiles(on, 50, [](index_t, int) {});
      ASSERT_LE(parallel::state_of(on).helpers.find()->team().tasks(), threads - 1);
    }
    closed.open();
    other.join();
  });
}

// team.2: helpers that start late touch neither the call nor the executor.
TEST(HelperTeam, ItsExecutorMayEndWithItsLastCall) {
  for (int round = 0; round < 2000; ++round) {
    executor on({.threads = 2 + round % 5});
    std::array<int, 8> tiles{};
    parallel::parallel_for_tiles(
        on, 8, [&](index_t tile, int) { tiles[static_cast<std::size_t>(tile)] = 1; });
    ASSERT_EQ(std::accumulate(tiles.begin(), tiles.end(), 0), 8);
  }
}

// loop.3
TEST(HelperTeam, ExceptionsOfHelpersReachTheCallerOnly) {
  expect_to_end([] {
    executor on({.threads = 3});
    for (int round = 0; round < 200; ++round) {
      const auto caller = std::this_thread::get_id();
      std::atomic<bool> thrown = false;
      try {
        parallel::parallel_for_tiles(on, 200, [&](index_t, int) {
          if (std::this_thread::get_id() == caller) return std::this_thread::yield();
          thrown = true;
          throw round;
        });
        EXPECT_FALSE(thrown);
      } catch (const int which) {
        EXPECT_EQ(which, round);
      }
    }
  });
}

// ---- progress -----------------------------------------------------------------------------------

// A sink that calls `body` at each report, and remembers the reports.
template <class Body>
class calling_sink final : public progress_sink {
 public:
  explicit calling_sink(Body body) : body_(std::move(body)) {}
  void advance(std::uint64_t done_bytes, std::uint64_t total_bytes) override {
    EXPECT_FALSE(inside_.exchange(true)) << "called concurrently";
    told.push_back(done_bytes);
    total = total_bytes;
    body_();
    inside_ = false;
  }
  std::vector<std::uint64_t> told;
  std::uint64_t total = 0;

 private:
  Body body_;
  std::atomic<bool> inside_ = false;
};

void expect_whole(const std::vector<std::uint64_t>& told, std::uint64_t total) {
  ASSERT_FALSE(told.empty());
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_EQ(told.back(), total);
}

// loop.5
TEST(Progress, ASinkMayCallItsOwnExecutor) {
  for (const int threads : {1, 2, 4})
    expect_to_end([threads] {
      const tensor ones = some_ones();
      executor* own = nullptr;
      calling_sink sink([&] { EXPECT_EQ(total(ones, *own), ones.size()); });
      executor on({.threads = threads, .progress = &sink});
      own = &on;
      tensor values = tensor::zeros({1 << 20}, dtype::int32);
      const executor::scope within(on);
      apply([](std::int32_t& x) { x = 2; }, values);
      EXPECT_EQ(sink.total, values.size_bytes()) << "nested calls are not told of";
      expect_whole(sink.told, sink.total);
    });
}

// loop.7: each tile of the outer call makes a call of its own.
TEST(Progress, IsThatOfTheOuterCallAlone) {
  for (const int threads : {1, 3})
    expect_to_end([threads] {
      calling_sink sink([] {});
      executor on({.threads = threads, .progress = &sink});
      const executor::scope within(on);
      const tensor values = tensor::zeros({1 << 20}, dtype::int32);
      for_each_segment<std::int32_t>(
          [](std::span<std::int32_t>) {
            const tensor inner = tensor::zeros({1 << 19}, dtype::int8);
            apply([](std::int8_t& x) { ++x; }, inner);
          },
          values);
      EXPECT_EQ(sink.total, values.size_bytes());
      expect_whole(sink.told, sink.total);
      apply([](std::int32_t& x) { ++x; }, values.narrow(0, 0, 1 << 18));
      EXPECT_EQ(sink.total, values.size_bytes() / 4);
    });
}

// loop.5: a sink may also make calls through another thread.
TEST(Progress, ASinkMayWaitForAnotherThreadsCall) {
  expect_to_end([] {
    const tensor ones = some_ones();
    executor* own = nullptr;
    calling_sink sink([&] {
      std::thread other([&] { EXPECT_EQ(total(ones, *own), ones.size()); });
      other.join();
    });
    executor on({.threads = 3, .progress = &sink});
    own = &on;
    tensor values = tensor::zeros({1 << 20}, dtype::int32);
    const executor::scope within(on);
    apply([](std::int32_t& x) { x = 2; }, values);
    expect_whole(sink.told, values.size_bytes());
  });
}

// loop.5: a call does not wait for a sink that another call keeps busy.
TEST(Progress, ASinkHoldsUpItsOwnCallOnly) {
  expect_to_end([] {
    gate closed;
    calling_sink sink([&] { closed.pass(); });
    executor on({.threads = 2, .progress = &sink});
    std::thread other([&] {
      tensor values = tensor::zeros({1 << 20}, dtype::int32);
      const executor::scope within(on);
      apply([](std::int32_t& x) { x = 2; }, values);
    });
    closed.await(1);
    const tensor ones = some_ones();
    EXPECT_EQ(total(ones, on), ones.size());
    closed.open();
    other.join();
    expect_whole(sink.told, sink.total);
  });
}

TEST(Progress, WhatASinkThrowsReachesTheCallerAndFreesTheSink) {
  for (const int threads : {1, 3})
    expect_to_end([threads] {
      struct failing final : progress_sink {
        void advance(std::uint64_t, std::uint64_t) override {
          ++told;
          if (throws) throw 5;
        }
        int told = 0;
        bool throws = true;
      } sink;
      executor on({.threads = threads, .progress = &sink});
      tensor values = tensor::zeros({1 << 20}, dtype::int32);
      const auto call = [&] {
        const executor::scope within(on);
        apply([](std::int32_t& x) { x = 2; }, values);
      };
      for (int round = 0; round < 3; ++round) EXPECT_THROW(call(), int);
      const int told = sink.told;
      sink.throws = false;
      call();
      EXPECT_GT(sink.told, told);
    });
}

// loop.5
TEST(Progress, ASinkMayCancelAndResume) {
  expect_to_end([] {
    executor* own = nullptr;
    calling_sink sink([&] {
      own->cancel();
      EXPECT_TRUE(own->cancelled());
      static_cast<void>(own->statistics());
      own->resume();
    });
    executor on({.threads = 2, .progress = &sink});
    own = &on;
    tensor values = tensor::zeros({1 << 20}, dtype::int32);
    try {
      const executor::scope within(on);
      apply([](std::int32_t& x) { x = 2; }, values);
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::cancelled);
    }
  });
}

}  // namespace
}  // namespace shale
