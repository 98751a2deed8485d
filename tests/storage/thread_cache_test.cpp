// Tests of the caches of threads: the biased lock, and blocks that return to the heap.
#include "storage/pool/caches/thread_cache.hpp"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <mutex>
#include <thread>
#include <vector>

#include "storage/pool/caches/biased_lock.hpp"
#include "storage/pool/pools/pool_state.hpp"

namespace shale {
namespace {

using detail::biased_lock;
using detail::block_request;
using detail::pool_state;
using detail::request_for;
using detail::thread_cache;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

// The owner increments a plain variable under the lock, while another thread takes the count away
// many times. Only the lock prevents lost updates. Returns the error of the sum.
std::int64_t miscounted(int moves) {
  biased_lock lock;
  struct alignas(64) {
    std::int64_t number = 0;
  } count;
  std::atomic<std::int64_t> truth = 0;
  std::atomic<bool> enough = false;
  std::thread owner([&] {
    while (!enough) {
      {
        const std::lock_guard mine(lock);
        count.number = count.number + 1;
      }
      truth.store(truth.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
  });
  while (truth == 0) std::this_thread::yield();
  std::int64_t moved = 0;
  for (int i = 0; i < moves; ++i) {
    lock.want();
    biased_lock::fence_all_threads();
    lock.await();
    moved += std::exchange(count.number, 0);
    lock.release();
    for (int gap = 0; gap < 100; ++gap) std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  enough = true;
  owner.join();
  return moved + count.number - truth;
}

TEST(BiasedLock, KeepsOwnerAndOthersApart) {
  biased_lock::prepare();
  EXPECT_EQ(miscounted(20'000), 0);
}

TEST(BiasedLock, KeepsThemApartWhereTheSystemDoesNotHelp) {
  biased_lock::set_stores(biased_lock::owner_stores::exchanged);
  EXPECT_EQ(miscounted(20'000), 0);
  biased_lock::prepare();
}

// From now on, membarrier fails in this thread and in threads that it starts.
bool lose_membarrier() {
  sock_filter program[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(BiasedLock, KeepsThemApartWhereASandboxComesLater) {
  biased_lock::prepare();
  bool lost = false;
  std::int64_t wrong = 0;
  std::thread([&] {
    lost = lose_membarrier();
    if (lost) wrong = miscounted(20'000);
  }).join();
  const auto stores = biased_lock::stores();
  biased_lock::prepare();
  if (!lost) GTEST_SKIP() << "seccomp filters are forbidden here";
  EXPECT_EQ(stores, biased_lock::owner_stores::exchanged);
  EXPECT_EQ(wrong, 0);
}

// Each pool has one thread at a time that waits for owners, so several may lose membarrier at once.
TEST(BiasedLock, KeepsThemApartWhereASandboxComesWhileOthersWaitForOwnersToo) {
  biased_lock::prepare();
  std::atomic<bool> lost = false;
  std::atomic<std::int64_t> wrong = 0;
  std::barrier together(2);
  const auto wait_for_an_owner = [&] {
    const bool gone = lose_membarrier();
    if (gone) lost = true;
    together.arrive_and_wait();
    if (gone) wrong += miscounted(20'000);
  };
  std::thread first(wait_for_an_owner);
  std::thread second(wait_for_an_owner);
  first.join();
  second.join();
  biased_lock::prepare();
  if (!lost) GTEST_SKIP() << "seccomp filters are forbidden here";
  EXPECT_EQ(wrong, 0);
}

// The pause of one thread says nothing about the owners that another waits for. A thread that comes
// meanwhile makes its own pause, and ends the change.
TEST(BiasedLock, WaitsItselfForOwnersThatStillChange) {
  biased_lock::prepare();
  bool lost = false;
  auto stores = biased_lock::owner_stores::plain;
  std::thread([&] {
    lost = lose_membarrier();
    if (!lost) return;
    biased_lock::set_stores(biased_lock::owner_stores::changing);
    biased_lock::fence_all_threads();
    stores = biased_lock::stores();
  }).join();
  biased_lock::prepare();
  if (!lost) GTEST_SKIP() << "seccomp filters are forbidden here";
  EXPECT_EQ(stores, biased_lock::owner_stores::exchanged);
}

// cached.1
TEST(ThreadCache, HandsOutWhatItKeptOnce) {
  thread_cache cache;
  alignas(64) std::byte memory[192] = {};
  const block_request small = request_for(40 * kib, 64);
  const block_request large = request_for(3 * mib, 64);
  EXPECT_EQ(cache.take(small), nullptr);
  cache.keep(memory, small);
  cache.keep(memory + 1, small);
  cache.keep(memory + 128, large);
  EXPECT_EQ(cache.bytes(), 2 * small.bytes + large.bytes);
  EXPECT_EQ(cache.class_block_bytes(), 2 * small.bytes);
  EXPECT_EQ(cache.take(request_for(100 * kib, 64)), nullptr);
  EXPECT_EQ(cache.take(request_for(2 * mib, 64)), nullptr);
  EXPECT_EQ(cache.take(request_for(33 * kib, 64)), memory + 1);  // same class, newest first
  EXPECT_EQ(cache.take(small), memory);
  EXPECT_EQ(cache.take(small), nullptr);
  EXPECT_FALSE(cache.has_place(large));
  EXPECT_EQ(cache.take(large), memory + 128);
  EXPECT_TRUE(cache.has_place(large));
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST(ThreadCache, KeepsAlignmentsApart) {
  thread_cache cache;
  alignas(128 * kib) static std::byte memory[256 * kib];
  const block_request aligned = request_for(3 * mib, 128 * kib);
  cache.keep(memory + 64 * kib, request_for(3 * mib, 64));
  EXPECT_EQ(cache.take(aligned), nullptr);
  EXPECT_EQ(cache.drop_large(), memory + 64 * kib);
  cache.keep(memory + 128 * kib, request_for(3 * mib, 64));
  EXPECT_EQ(cache.take(aligned), memory + 128 * kib);
}

TEST(ThreadCache, DropsTheOldest) {
  thread_cache cache;
  std::byte memory[8] = {};
  const block_request request = request_for(64 * kib, 64);
  for (int i = 0; i < 5; ++i) cache.keep(memory + i, request);
  std::vector<void*> dropped;
  cache.drop(request.size_class, 3, [&](void* block) { dropped.push_back(block); });
  EXPECT_EQ(dropped, (std::vector<void*>{memory, memory + 1, memory + 2}));
  EXPECT_EQ(cache.bytes(), 2 * request.bytes);
  EXPECT_EQ(cache.take(request), memory + 4);
  EXPECT_EQ(cache.take(request), memory + 3);
}

TEST(ThreadCache, DropsWhatIsOfNoUse) {
  thread_cache cache;
  std::byte memory[3] = {};
  const block_request small = request_for(40 * kib, 64);
  const block_request middle = request_for(mib, 64);
  cache.keep(memory, small);
  cache.keep(memory + 1, middle);
  cache.keep(memory + 2, request_for(2 * mib, 64));
  std::vector<void*> dropped;
  const auto drop = [&](void* block) { dropped.push_back(block); };
  cache.drop_unused(drop);
  EXPECT_TRUE(dropped.empty());
  cache.keep(cache.take(middle), middle);
  cache.drop_unused(drop);
  EXPECT_EQ(dropped, (std::vector<void*>{memory + 2, memory}));
  EXPECT_EQ(cache.fullest_class(), middle.size_class);
  cache.drop_unused(drop);
  EXPECT_EQ(dropped.back(), memory + 1);
  EXPECT_EQ(cache.bytes(), 0u);
}

// A large block stays in the cache of the thread that freed it until that thread requests another
// size.
TEST(ThreadCache, KeepsTheLargeBlockThatWasFreedLast) {
  pool_state pool({}, pool_state::aged_by::caller);
  void* const first = pool.allocate(5 * mib, 64);
  pool.deallocate(first, 5 * mib, 64);
  EXPECT_EQ(pool.statistics().idle_bytes, 5 * mib);
  EXPECT_EQ(pool.allocate(5 * mib, 64), first);
  pool.deallocate(first, 5 * mib, 64);
  void* const smaller = pool.allocate(3 * mib, 64);  // the kept block was given back and cut
  EXPECT_EQ(smaller, first);
  pool.deallocate(smaller, 3 * mib, 64);
  EXPECT_TRUE(pool.all_clear());
}

// It also leaves the cache when housekeeping finds that it was not used, whatever else the thread
// does meanwhile.
TEST(ThreadCache, LosesALargeBlockThatIsNotUsedAgain) {
  using namespace std::chrono_literals;
  pool_state pool({}, pool_state::aged_by::caller);
  pool.deallocate(pool.allocate(50 * mib, 64), 50 * mib, 64);
  const auto start = detail::pool_clock::now();
  for (int tick = 0; tick < 10; ++tick) {
    pool.deallocate(pool.allocate(40 * kib, 64), 40 * kib, 64);
    pool.age_idle_memory(start + tick * 500ms);
  }
  EXPECT_LT(pool.idle_bytes(), mib);
}

// New memory is touched only if the caches of threads do not help.
TEST(ThreadCache, ComesBackBeforeNewMemoryIsTouched) {
  pool_state pool({}, pool_state::aged_by::caller);
  std::vector<std::byte*> blocks;
  std::barrier turn(2);
  std::thread other([&] {
    for (int i = 0; i < 8; ++i)
      blocks.push_back(static_cast<std::byte*>(pool.allocate(128 * kib, 64)));
    for (auto* const block : blocks) pool.deallocate(block, 128 * kib, 64);
    turn.arrive_and_wait();  // the blocks are in the caches now
    turn.arrive_and_wait();
  });
  turn.arrive_and_wait();
  auto* const large = static_cast<std::byte*>(pool.allocate(768 * kib, 64));
  EXPECT_GE(large, *std::min_element(blocks.begin(), blocks.end()));
  EXPECT_LE(large + 768 * kib, *std::max_element(blocks.begin(), blocks.end()) + 128 * kib);
  pool.deallocate(large, 768 * kib, 64);
  turn.arrive_and_wait();
  other.join();
  EXPECT_TRUE(pool.all_clear());
}

}  // namespace
}  // namespace shale
