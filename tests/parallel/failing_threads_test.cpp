// Tests the engine if the system refuses threads: calls run on the threads that exist, at least on
// the caller's. Tests its cache of tiles if there is no memory: nobody waits for a tile that no
// thread loads. It is a program of its own, because its pthread_create and its `new` fail.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <tbb/global_control.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <memory>
#include <new>
#include <thread>
#include <utility>

#include "parallel/executor/executor_state.hpp"
#include "parallel/executor/tile_loop.hpp"
#include "parallel/sources/tiles_of_call.hpp"
#include "parallel/threads/helper_arena.hpp"
#include "parallel/threads/thread_share.hpp"
#include "shale/apply.hpp"
#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/ops.hpp"
#include "shale/reduce.hpp"
#include "shale/tile_source.hpp"
#include "support/bounded.hpp"
#include "support/failing_calls.hpp"
#include "support/little_memory.hpp"

namespace {

// The number of further threads that may be alive at once, with oneTBB's; below 0: any number.
std::atomic<int> room = -1;

std::atomic<int> refused = 0;  // calls of pthread_create that failed

struct start {
  void* (*body)(void*);
  void* context;
};

void* run_and_leave(void* given) {
  const start begun = *static_cast<start*>(given);
  delete static_cast<start*>(given);
  void* const result = begun.body(begun.context);
  ++room;
  return result;
}

}  // namespace

// The system's limits count threads that are alive.
extern "C" [[gnu::visibility("default")]] int pthread_create(pthread_t* made,
                                                             const pthread_attr_t* attributes,
                                                             void* (*body)(void*), void* context) {
  using function = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto real = reinterpret_cast<function>(::dlsym(RTLD_NEXT, "pthread_create"));
  if (room.load() < 0) return real(made, attributes, body, context);
  if (room.fetch_sub(1) <= 0) {
    ++room;
    ++refused;
    return EAGAIN;
  }
  auto* const begun = new (std::nothrow) start{body, context};
  return begun == nullptr ? ENOMEM : real(made, attributes, run_and_leave, begun);
}

namespace shale {
namespace {

// Adds to tensors and sums them. They are large enough for many helpers.
void expect_right_results(executor& on) {
  const executor::scope within(on);
  const tensor values = tensor::zeros({1 << 20}, dtype::float32);
  for (int round = 1; round <= 5; ++round) {
    apply([](float& x) { x += 1; }, values);
    EXPECT_EQ(reduce(
                  values, 0.0, [](double& to, float x) { to += x; },
                  [](double& to, double part) { to += part; }),
              round * double{1 << 20});
  }
}

// oneTBB starts its threads one after the other, also after the call that needs them. Only when
// they run can others be counted.
void wait_for_started_threads() {
  for (int quiet = 0, before = room; quiet < 50; ++quiet) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (std::exchange(before, room.load()) != room) quiet = 0;
  }
}

// share.1
TEST(FailingThreads, CallsNeedNone) {
  for (const int allowed : {0, 1, 2, 3, 5, 7, 20}) {
    SCOPED_TRACE(allowed);
    test::expect_to_end([&] {
      executor on({.threads = 8});
      room = allowed;
      expect_right_results(on);
      wait_for_started_threads();
      executor more({.threads = 12});
      expect_right_results(more);
    });
  }
}

// Each of the two shares alone could have its threads, but not both at once.
TEST(FailingThreads, ExecutorsShareThoseThereAre) {
  for (const int allowed : {4, 6, 9}) {
    SCOPED_TRACE(allowed);
    test::expect_to_end([&] {
      executor one({.threads = 5});
      executor other({.threads = 5});
      std::atomic<bool> both = false;
      std::thread beside([&] {
        both.wait(false);
        expect_right_results(one);
      });
      room = allowed;
      expect_right_results(one);
      expect_right_results(other);
      both = true;
      both.notify_all();
      expect_right_results(other);
      beside.join();
    });
  }
}

TEST(FailingThreads, AreCountedAsTheyCanBeStarted) {
  test::expect_to_end([] {
    const tbb::global_control many(tbb::global_control::max_allowed_parallelism, 100);
    const auto allowed = [] {
      return tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
    };
    room = 5;
    const parallel::thread_share none(0);
    EXPECT_EQ(none.threads(), 0);
    const parallel::thread_share some(3);
    EXPECT_EQ(some.threads(), 3);
    EXPECT_EQ(room, 5);  // all have ended
    EXPECT_EQ(allowed(), 100U);
    room = 60;  // after a refusal, none are tried again: oneTBB may be starting its own
    const parallel::thread_share more(4);
    EXPECT_EQ(more.threads(), 4);
    EXPECT_EQ(allowed(), 5U);  // 4 together, and the caller; one is the engine's own thread
    const parallel::thread_share many_more(50);
    EXPECT_EQ(many_more.threads(), 4);
  });
}

// Makes a few calls with many tiles. Each tile must be visited once.
void expect_whole_calls(executor& on) {
  for (int round = 0; round < 5; ++round) {
    std::atomic<int> visited = 0;
    parallel::parallel_for_tiles(on, 64, [&](index_t, int) { ++visited; });
    EXPECT_EQ(visited, 64);
  }
}

// share.1: the C library reserves addresses for each thread that allocates, after it has started.
TEST(FailingThreads, AreCountedWithTheAddressesThatTheyReserve) {
  for (const rlim_t mib : {64, 96, 128, 192, 256, 320, 384, 512, 640, 768, 1024, 1536}) {
    SCOPED_TRACE(mib);
    test::expect_to_end([mib] {
      const test::little_memory limit(mib << 20);
      executor on({.threads = 16});
      const executor::scope within(on);
      for (int round = 0; round < 5; ++round)
        parallel::parallel_for_tiles(on, 256, [&](index_t, int) {
          const std::unique_ptr<char[]> some(new char[1000]);
          *static_cast<volatile char*>(some.get()) = 1;
          std::this_thread::sleep_for(std::chrono::microseconds(100));
        });
    });
  }
}

// arena.1: oneTBB has taken the task when it finds that no thread can be started for it.
TEST(FailingThreads, AnArenaThatHadNoneIsNotAskedAgain) {
  for (const int threads : {2, 3, 9})
    test::expect_to_end([threads] {
      const parallel::thread_share proven(16);  // the system could start as many a moment ago
      for (int round = 0; round < 4; ++round) {
        executor on({.threads = threads});
        refused = 0;
        room = 0;
        expect_whole_calls(on);
        room = -1;
        expect_whole_calls(on);
        expect_right_results(on);
        EXPECT_TRUE(round > 0 || refused > 0);
        // Each arena that was refused a thread is given up, and the last one is not.
        const auto made = static_cast<int>(parallel::state_of(on).helpers.made());
        EXPECT_EQ(made > 1, refused > 0);
        EXPECT_LE(made, refused + 1);
      }
    });
}

// arena.1, arena.2
TEST(FailingThreads, AnArenaThatFoundNoMemoryIsMadeAnew) {
  test::expect_to_end([] {
    constexpr int threads = 16;
    const parallel::thread_share proven(threads);
    executor on({.threads = threads});
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
    rlimit short_of_memory = before;
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    short_of_memory.rlim_cur = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    ASSERT_EQ(::setrlimit(RLIMIT_AS, &short_of_memory), 0);
    expect_whole_calls(on);
    EXPECT_EQ(parallel::state_of(on).helpers.made(), 0U);
    ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
    expect_whole_calls(on);
    EXPECT_EQ(parallel::state_of(on).helpers.made(), 1U);
  });
}

// If there is no memory to set oneTBB's limit, oneTBB is asked for no thread.
TEST(FailingThreads, CallsNeedNoMemoryForALimit) {
  for (std::uint64_t at = 0; at < 3; ++at)
    test::expect_to_end([at] {
      executor on({.threads = 8});
      room = 0;
      test::fail_calls(test::failing::allocation, at);
      expect_whole_calls(on);
      test::stop_failing();
      if (at < 1) {
        EXPECT_EQ(test::failed_call(), "operator new");
      }
      room = -1;
      expect_whole_calls(on);
      expect_right_results(on);
    });
}

// One tile of zeros.
class zeros final : public tile_source {
 public:
  shale::dtype dtype() const noexcept override { return dtype::float32; }
  const dims& shape() const noexcept override { return shape_; }
  const dims& tile_shape() const noexcept override { return shape_; }
  std::uint64_t stored_bytes(const dims&) const override { return 1; }
  void load(const dims&, const tensor& into) const override {
    for (auto& value : const_cast<tensor&>(into).elements<float>()) value = 0;
  }

 private:
  const dims shape_{10};
};

// cache.3: if its load has failed, the next call of `get` throws the same, and does not load it.
TEST(FailingMemory, ATileThatFoundNoneIsNotWaitedFor) {
  test::expect_to_end([] {
    executor one({.threads = 1});
    const zeros source;
    bool failed = true;
    int given = 0, rethrown = 0;
    std::uint64_t failures = 0;
    for (; failed && failures < 1000; ++failures) {
      parallel::tiles_of_call cache(std::size_t{1} << 20, one);
      test::fail_calls(test::failing::allocation, failures);
      try {
        cache.get(source, {0});
      } catch (...) {
      }
      test::stop_failing();
      failed = !test::failed_call().empty();
      try {
        EXPECT_EQ(cache.get(source, {0}).size(), 10);
        ++given;
      } catch (const std::bad_alloc&) {
        EXPECT_TRUE(failed);
        ++rethrown;
      } catch (const error& failure) {
        EXPECT_EQ(failure.code(), errc::out_of_memory);
        EXPECT_TRUE(failed);
        ++rethrown;
      }
    }
    EXPECT_GT(given, 1) << "there was no memory for an entry";
    EXPECT_GT(rethrown, 0);
    EXPECT_GT(failures, 2U);
    EXPECT_FALSE(failed);
  });
}

}  // namespace
}  // namespace shale
