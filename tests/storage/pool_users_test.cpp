// Tests the users of a pool: threads, forked children, standard containers, arrays of objects.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory_resource>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "shale/memory_pool.hpp"
#include "shale/storage.hpp"
#include "storage/pool/heap/segment_heap.hpp"
#include "storage/pool/heap/size_classes.hpp"
#include "storage/pool/pools/housekeeper.hpp"
#include "storage/pool/pools/pool_state.hpp"
#include "storage/test_support.hpp"
#include "support/allocation_turns.hpp"
#include "support/system_page.hpp"

namespace shale {
namespace {

using detail::pool_state;
using test::code_of;
using namespace std::chrono_literals;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

// ---- threads ------------------------------------------------------------------------------------

TEST(MemoryPool, ThreadExitReturnsItsMagazines) {
  memory_pool pool;
  std::thread([&] {
    for (const std::size_t bytes : {33 * kib, 100 * kib, 700 * kib}) {
      std::vector<void*> blocks;
      for (int i = 0; i < 20; ++i) blocks.push_back(pool.allocate(bytes));
      for (void* const block : blocks) pool.deallocate(block, bytes);
    }
  }).join();
  EXPECT_TRUE(pool.all_clear());
  // All free memory is one block again.
  EXPECT_EQ(pool.statistics().largest_free_bytes, pool.statistics().mapped_bytes);
  pool.trim();
  EXPECT_EQ(pool.statistics().mapped_bytes, 0u);
}

TEST(MemoryPool, BlocksMayBeFreedByAnotherThreadForEver) {
  memory_pool pool;
  constexpr int rounds = 20'000;
  constexpr std::size_t bytes = 48 * kib;
  std::array<std::atomic<void*>, 8> hands{};
  std::size_t mapped_early = 0;
  std::thread giver([&] {
    for (int i = 0; i < rounds; ++i) {
      auto& hand = hands[static_cast<std::size_t>(i) % hands.size()];
      while (hand.load(std::memory_order_acquire) != nullptr) std::this_thread::yield();
      hand.store(pool.allocate(bytes), std::memory_order_release);
      if (i == rounds / 10) mapped_early = pool.statistics().mapped_bytes;
    }
  });
  for (int i = 0; i < rounds; ++i) {
    auto& hand = hands[static_cast<std::size_t>(i) % hands.size()];
    void* taken = nullptr;
    while ((taken = hand.exchange(nullptr, std::memory_order_acq_rel)) == nullptr)
      std::this_thread::yield();
    pool.deallocate(taken, bytes);
  }
  giver.join();
  EXPECT_TRUE(pool.all_clear());
  EXPECT_EQ(pool.statistics().mapped_bytes, mapped_early);
}

TEST(MemoryPool, ManyThreadsShareOnePool) {
  memory_pool pool({.limit_bytes = 400 * mib});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      struct held_block {
        std::byte* address;
        std::size_t bytes;
      };
      std::vector<held_block> held;
      for (int i = 0; i < 3000; ++i) {
        if (held.size() < 12 && random() % 2 == 0) {
          const std::size_t bytes = (std::size_t{1} << (random() % 13)) * kib + random() % kib;
          auto* const address = static_cast<std::byte*>(pool.allocate(bytes));
          address[0] = address[bytes - 1] = static_cast<std::byte>(t);
          held.push_back({address, bytes});
        } else if (!held.empty()) {
          std::swap(held[random() % held.size()], held.back());
          const auto [address, bytes] = held.back();
          if (address[0] != static_cast<std::byte>(t) || address[bytes - 1] != address[0]) ++wrong;
          pool.deallocate(address, bytes);
          held.pop_back();
        }
        if (i % 500 == 0) pool.trim();
        if (i % 100 == 0) {
          const auto now = pool.statistics();
          if (now.live_bytes + now.cached_bytes != now.mapped_bytes) ++wrong;
        }
      }
      for (const auto& [address, bytes] : held) pool.deallocate(address, bytes);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(pool.all_clear());
  pool.trim();
  EXPECT_EQ(pool.statistics().mapped_bytes, 0u);
}

TEST(MemoryPool, PoolsComeAndGoUnderThreadsThatUsedThem) {
  std::atomic<memory_pool*> shared = nullptr;
  std::atomic<int> round = 0;
  std::thread user([&] {
    for (int seen = 0; seen < 50;) {
      if (round.load(std::memory_order_acquire) <= seen) {
        std::this_thread::yield();
        continue;
      }
      memory_pool& pool = *shared.load();
      pool.deallocate(pool.allocate(50 * kib), 50 * kib);
      shared.store(nullptr, std::memory_order_release);
      ++seen;
    }
  });
  for (int i = 0; i < 50; ++i) {
    memory_pool pool;
    shared.store(&pool);
    round.store(i + 1, std::memory_order_release);
    while (shared.load(std::memory_order_acquire) != nullptr) std::this_thread::yield();
    EXPECT_TRUE(pool.all_clear());
  }
  user.join();
}

#if !defined(__SANITIZE_THREAD__)  // it does not support fork with many threads
TEST(MemoryPool, ForkedChildrenCanUseIt) {
  memory_pool pool;
  std::atomic<bool> stop = false;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 3; ++t)
    threads.push_back(test::running_thread([&, t] {
      while (!stop)
        for (const std::size_t bytes : {40 * kib, 2 * mib, 60 * mib}) {
          const auto turn = test::turn_to_allocate();
          pool.deallocate(pool.allocate(bytes + static_cast<std::size_t>(t)),
                          bytes + static_cast<std::size_t>(t));
        }
    }));
  for (int i = 0; i < 20; ++i) {
    auto turn = test::turn_to_allocate();
    const pid_t child = ::fork();
    if (child != 0 && turn) turn.unlock();
    if (child == 0) {
      ::alarm(60);  // a lock that stayed locked would never be released
      for (const std::size_t bytes : {40 * kib, 2 * mib, 60 * mib}) {
        auto* const block = static_cast<std::byte*>(pool.allocate(bytes));
        std::memset(block, 1, 10 * kib);
        pool.deallocate(block, bytes);
      }
      pool.trim();
      ::_exit(0);
    }
    int status = -1;
    if (child > 0) ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    if (status != 0) break;
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(pool.all_clear());
}
#endif

// ---- as others use it ---------------------------------------------------------------------------

TEST(MemoryPool, IsAMemoryResource) {
  memory_pool pool;
  memory_pool other;
  {
    std::pmr::vector<float> values{&pool};
    for (int i = 0; i < 1'000'000; ++i) values.push_back(static_cast<float>(i));
    EXPECT_EQ(values[999'999], 999'999.0f);
    EXPECT_FALSE(pool.all_clear());
    const std::pmr::vector<float> copy(values, &other);
    EXPECT_EQ(copy, values);
  }
  EXPECT_TRUE(pool.all_clear());
  EXPECT_TRUE(pool.is_equal(pool));
  EXPECT_FALSE(pool.is_equal(other));
}

TEST(MemoryPool, ArraysReturnToTheirPool) {
  memory_pool pool;
  static int alive = 0;
  struct counted {
    counted() { ++alive; }
    ~counted() { --alive; }
    int value = 5;
  };
  {
    const auto numbers = pool.make_unique<double[]>(10'000);
    EXPECT_EQ(std::count(numbers.get(), numbers.get() + 10'000, 0.0), 10'000);
    const auto objects = pool.make_unique<counted[]>(7);
    EXPECT_EQ(alive, 7);
    EXPECT_EQ(objects[6].value, 5);
    const auto raw = pool.make_unique_for_overwrite<std::byte[]>(3 * mib);
    raw[3 * mib - 1] = std::byte{1};
    const std::shared_ptr<counted[]> shared = pool.make_shared<counted[]>(2);
    const auto again = shared;
    EXPECT_EQ(alive, 9);
    const auto uninitialised = pool.make_shared_for_overwrite<int[]>(100);
    uninitialised[99] = 1;
    const auto none = pool.make_unique<int[]>(0);
    EXPECT_FALSE(pool.all_clear());
  }
  EXPECT_EQ(alive, 0);
  EXPECT_TRUE(pool.all_clear());
}

TEST(MemoryPool, KeepsNothingWhenAConstructorThrows) {
  memory_pool pool;
  static int alive = 0;
  struct third_throws {
    third_throws() {
      if (alive == 2) throw std::runtime_error("third");
      ++alive;
    }
    ~third_throws() { --alive; }
  };
  EXPECT_THROW(static_cast<void>(pool.make_unique<third_throws[]>(5)), std::runtime_error);
  EXPECT_EQ(alive, 0);
  EXPECT_TRUE(pool.all_clear());
  EXPECT_EQ(code_of([&] { static_cast<void>(pool.make_unique<double[]>(~std::size_t{0} / 4)); }),
            errc::out_of_memory);
}

TEST(MemoryPool, AlignsWhatItMakes) {
  memory_pool pool;
  struct alignas(256) wide {
    char bytes[256];
  };
  const auto few = pool.make_unique<wide[]>(3);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(few.get()) % 256, 0u);
}

#if defined(__SANITIZE_ADDRESS__)
TEST(MemoryPool, PoisonsWhatIsNotLive) {
  memory_pool pool;
  for (const std::size_t bytes : {100 * kib, 3 * mib}) {
    auto* const block = static_cast<volatile char*>(pool.allocate(bytes - 100));
    EXPECT_DEATH(block[bytes - 100 + 8] = 1, "use-after-poison");
    block[bytes - 101] = 1;
    pool.deallocate(const_cast<char*>(block), bytes - 100);
    EXPECT_DEATH(block[0] = 1, "use-after-poison");
  }
}
#endif

}  // namespace
}  // namespace shale
