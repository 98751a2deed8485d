// Tests of the whole pool: its guarantees under random sequences, limits and time.
#include "shale/memory_pool.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "shale/storage.hpp"
#include "storage/pool/heap/segment_heap.hpp"
#include "storage/pool/heap/size_classes.hpp"
#include "storage/pool/pools/housekeeper.hpp"
#include "storage/pool/pools/pool_state.hpp"
#include "storage/test_support.hpp"
#include "support/system_page.hpp"

namespace shale {
namespace {

using detail::pool_clock;
using detail::pool_state;
using test::code_of;
using namespace std::chrono_literals;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

// The blocks of one owner. No operation of the pool may overlap or change them.
class ledger {
 public:
  explicit ledger(pool_state& pool) : pool_(pool) {}
  ~ledger() {
    while (!blocks_.empty()) release(blocks_.begin());
  }

  // Allocates a block; false if the pool had none.
  bool allocate(std::size_t bytes, std::size_t alignment) {
    std::byte* address = nullptr;
    try {
      address = static_cast<std::byte*>(pool_.allocate(bytes, alignment));
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::out_of_memory);
      return false;
    }
    const auto number = reinterpret_cast<std::uintptr_t>(address);
    EXPECT_EQ(number % std::max<std::size_t>(alignment, 64), 0u) << bytes;
    const auto after = blocks_.lower_bound(address);
    if (after != blocks_.end()) {
      EXPECT_LE(address + bytes, after->first);
    }
    if (after != blocks_.begin()) {
      const auto& [before, held] = *std::prev(after);
      EXPECT_LE(before + held.bytes, address);
    }
    blocks_[address] = {bytes, alignment, ++stamp_};
    live_bytes_ += bytes;
    mark(address, bytes, stamp_);
    return true;
  }

  void release_nth(std::size_t n) {
    if (!blocks_.empty())
      release(std::next(blocks_.begin(), static_cast<std::ptrdiff_t>(n % blocks_.size())));
  }

  std::size_t count() const { return blocks_.size(); }
  std::size_t live_bytes() const { return live_bytes_; }  // as requested

 private:
  struct held_block {
    std::size_t bytes;
    std::size_t alignment;
    std::uint64_t stamp;
  };
  using iterator = std::map<std::byte*, held_block>::iterator;

  // Checks both ends and some bytes between. In large blocks these are few, because each makes a
  // huge page resident.
  template <class Visit>
  static void each_mark(std::size_t bytes, Visit visit) {
    for (std::size_t offset = 0; offset<bytes; offset += bytes> 2 * mib ? 32 * mib : 64 * kib)
      visit(offset);
    if (bytes > 0) visit(bytes - 1);
  }
  static void mark(std::byte* address, std::size_t bytes, std::uint64_t stamp) {
    each_mark(bytes, [&](std::size_t offset) { address[offset] = static_cast<std::byte>(stamp); });
  }
  void release(iterator block) {
    std::byte* const address = block->first;
    const held_block held = block->second;
    each_mark(held.bytes, [&](std::size_t offset) {
      EXPECT_EQ(address[offset], static_cast<std::byte>(held.stamp))
          << held.bytes << " at " << offset;
    });
    live_bytes_ -= held.bytes;
    blocks_.erase(block);
    pool_.deallocate(address, held.bytes, held.alignment);
  }

  pool_state& pool_;
  std::map<std::byte*, held_block> blocks_;
  std::size_t live_bytes_ = 0;
  std::uint64_t stamp_ = 0;
};

void expect_accounts(const pool_state& pool, const ledger& blocks) {
  const auto now = pool.statistics();
  EXPECT_EQ(now.live_blocks, blocks.count());
  EXPECT_GE(now.live_bytes, blocks.live_bytes());
  EXPECT_EQ(now.live_bytes + now.cached_bytes, now.mapped_bytes);
  EXPECT_LE(now.idle_bytes, now.cached_bytes);
  EXPECT_LE(now.largest_free_bytes, now.cached_bytes);
  EXPECT_GE(now.peak_live_bytes, now.live_bytes);
  EXPECT_TRUE(pool.is_consistent());
  EXPECT_EQ(pool.all_clear(), blocks.count() == 0);
}

// Sizes for every route, including the limits of classes.
rc::Gen<std::size_t> any_bytes() {
  using rc::gen::inRange;
  return rc::gen::oneOf(inRange<std::size_t>(0, 32 * kib), inRange<std::size_t>(32 * kib, mib + 1),
                        inRange<std::size_t>(mib, 8 * mib), inRange<std::size_t>(8 * mib, 70 * mib),
                        rc::gen::map(inRange(0, 63), [](int n) {
                          return (std::size_t{32} << (10 + n % 6)) +
                                 static_cast<std::size_t>(n / 21) - 1;
                        }));
}

struct step {
  int action;  // of 10
  std::size_t bytes;
  std::size_t choice;
};
rc::Gen<step> any_step() {
  return rc::gen::build<step>(rc::gen::set(&step::action, rc::gen::inRange(0, 10)),
                              rc::gen::set(&step::bytes, any_bytes()),
                              rc::gen::set(&step::choice, rc::gen::inRange<std::size_t>(0, 1000)));
}

// pool.1, pool.2, heap.1
RC_GTEST_PROP(MemoryPool, KeepsItsPromisesOverRandomSequences, ()) {
  const auto steps = *rc::gen::container<std::vector<step>>(any_step());
  pool_state pool({}, pool_state::aged_by::caller);
  {
    ledger blocks(pool);
    auto now = pool_clock::now();
    for (const auto& [action, bytes, choice] : steps) {
      if (action < 5) {
        blocks.allocate(bytes, choice % 8 == 0 ? std::size_t{64} << (choice % 16) : 64);
      } else if (action < 8) {
        blocks.release_nth(choice);
      } else if (action == 8) {
        now += std::chrono::milliseconds(choice * 40);  // up to 40 s
        pool.age_idle_memory(now);
      } else {
        pool.trim();
      }
      expect_accounts(pool, blocks);
    }
  }
  RC_ASSERT(pool.all_clear());
  pool.trim();
  RC_ASSERT(pool.statistics().mapped_bytes == 0u);
}

// The oracle for a pool of large blocks: live bytes, rounded up to 8 KiB or to larger pages, must
// fit in the limit.
RC_GTEST_PROP(MemoryPool, OfLargeBlocksFillsItsLimitExactly, ()) {
  const std::size_t limit = *rc::gen::inRange<std::size_t>(1, 200) * mib;
  const auto sizes =
      *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange(mib + 1, 80 * mib));
  pool_state pool({.limit_bytes = limit}, pool_state::aged_by::caller);
  ledger blocks(pool);
  const std::size_t unit = std::max(8 * kib, test::system_page_bytes());
  std::size_t live = 0;
  for (const std::size_t bytes : sizes) {
    const std::size_t rounded = (bytes + unit - 1) / unit * unit;
    const bool fits = live + rounded <= limit;
    RC_ASSERT(blocks.allocate(bytes, 64) == fits);
    if (fits) live += rounded;
    RC_ASSERT(pool.statistics().live_bytes == live);
    RC_ASSERT(pool.statistics().mapped_bytes <= limit);
    if (bytes % 3 == 0) {
      const std::size_t before = blocks.live_bytes();
      blocks.release_nth(bytes);
      live = pool.statistics().live_bytes;
      RC_ASSERT(blocks.live_bytes() <= before);
    }
    expect_accounts(pool, blocks);
  }
}

// pool.3
TEST(MemoryPool, LimitThrowsAndLeavesThePoolUsable) {
  memory_pool pool({.limit_bytes = 10 * mib});
  EXPECT_EQ(pool.limit_bytes(), 10 * mib);
  for (const std::size_t bytes : {10 * kib, 40 * kib, 500 * kib, 3 * mib}) {
    std::vector<void*> blocks;
    EXPECT_EQ(code_of([&] {
                for (;;) blocks.push_back(pool.allocate(bytes, 64));
              }),
              errc::out_of_memory);
    // Nearly the whole limit could be used, for any sizes.
    EXPECT_GE(blocks.size() * bytes, 8 * mib) << bytes;
    EXPECT_LE(pool.statistics().mapped_bytes, 10 * mib);
    for (void* const block : blocks) pool.deallocate(block, bytes, 64);
    EXPECT_TRUE(pool.all_clear());
  }
  pool.set_limit_bytes(mib);
  EXPECT_LE(pool.statistics().mapped_bytes, mib);
  EXPECT_EQ(code_of([&] { static_cast<void>(pool.allocate(2 * mib)); }), errc::out_of_memory);
  pool.set_limit_bytes(0);
  pool.deallocate(pool.allocate(20 * mib), 20 * mib);
  const std::string text =
      test::text_of([&] { static_cast<void>(pool.allocate(~std::size_t{0} >> 1)); });
  EXPECT_NE(text.find("out_of_memory"), std::string::npos) << text;
}

TEST(MemoryPool, SetsBytesOfItsLimitAside) {
  memory_pool pool({.limit_bytes = 100 * mib});
  void* const block = pool.allocate(30 * mib);
  pool.deallocate(pool.allocate(60 * mib), 60 * mib);
  {
    // Idle memory is given back to make room; live blocks are not.
    memory_pool::reservation most = pool.reserve(90 * mib);
    EXPECT_EQ(most.bytes(), 70 * mib);
    const auto now = pool.statistics();
    EXPECT_EQ(now.reserved_bytes, 70 * mib);
    EXPECT_EQ(now.mapped_bytes, 30 * mib);
    EXPECT_EQ(now.cached_bytes, 0u);
    EXPECT_EQ(pool.reserve(mib).bytes(), 0u);
    const std::string text = test::text_of([&] { static_cast<void>(pool.allocate(2 * mib)); });
    EXPECT_NE(text.find("are set aside"), std::string::npos) << text;
    memory_pool::reservation moved = std::move(most);
    EXPECT_EQ(most.bytes(), 0u);
    EXPECT_EQ(moved.bytes(), 70 * mib);
    moved = pool.reserve(0);
  }
  EXPECT_EQ(pool.statistics().reserved_bytes, 0u);
  pool.deallocate(pool.allocate(60 * mib), 60 * mib);
  pool.deallocate(block, 30 * mib);
  memory_pool boundless;
  EXPECT_EQ(boundless.reserve(std::size_t{1} << 40).bytes(), std::size_t{1} << 40);
  EXPECT_EQ(boundless.statistics().mapped_bytes, 0u);
}

TEST(MemoryPool, KeepsALimitSetAfterAllWasSetAside) {
  memory_pool pool;
  const memory_pool::reservation most = pool.reserve(~std::size_t{0});
  const memory_pool::reservation rest = pool.reserve(~std::size_t{0});
  EXPECT_GT(most.bytes(), std::size_t{1} << 60);
  EXPECT_EQ(pool.statistics().reserved_bytes, most.bytes() + rest.bytes());
  EXPECT_EQ(code_of([&] { static_cast<void>(pool.allocate(~std::size_t{0} >> 1)); }),
            errc::out_of_memory);
  void* const block = pool.allocate(mib);
  EXPECT_EQ(pool.statistics().live_bytes, mib);
  pool.set_limit_bytes(10 * mib);
  EXPECT_EQ(code_of([&] { static_cast<void>(pool.allocate(mib)); }), errc::out_of_memory);
  pool.deallocate(block, mib);
}

TEST(MemoryPool, RoundsUpByLessThanAQuarter) {
  using detail::class_of;
  using detail::nominal_class_bytes;
  for (std::size_t bytes = 32 * kib; bytes <= mib; bytes += 4 * kib) {
    const std::size_t given = nominal_class_bytes(class_of(bytes));
    ASSERT_GE(given, bytes);
    ASSERT_LT(given - bytes, bytes / 4 + 1) << bytes;
    if (class_of(bytes) > 0) {
      ASSERT_LT(nominal_class_bytes(class_of(bytes) - 1), bytes);
    }
  }
  for (std::size_t size_class = 0; size_class < detail::size_classes; ++size_class) {
    EXPECT_EQ(nominal_class_bytes(size_class) % detail::granule_bytes, 0u);
    EXPECT_EQ(class_of(nominal_class_bytes(size_class)), size_class);
  }
}

TEST(MemoryPool, ReusesWhatWasFreed) {
  pool_state pool({}, pool_state::aged_by::caller);
  for (const std::size_t bytes : {64 * kib, 3 * mib, 64 * mib, 300 * mib}) {
    void* const first = pool.allocate(bytes, 64);
    pool.deallocate(first, bytes, 64);
    const auto before = pool.statistics();
    void* const second = pool.allocate(bytes, 64);
    const auto after = pool.statistics();
    EXPECT_EQ(second, first) << bytes;
    EXPECT_EQ(after.hits, before.hits + 1) << bytes;
    EXPECT_EQ(after.misses, before.misses) << bytes;
    EXPECT_EQ(after.mapped_bytes, before.mapped_bytes) << bytes;
    pool.deallocate(second, bytes, 64);
  }
}

TEST(MemoryPool, CountsWhatItDoes) {
  pool_state pool({}, pool_state::aged_by::caller);
  void* const a = pool.allocate(3 * mib, 64);
  void* const b = pool.allocate(5 * mib, 64);
  auto now = pool.statistics();
  EXPECT_EQ(now.misses, 1u);
  EXPECT_EQ(now.hits, 1u);
  EXPECT_EQ(now.splits, 2u);
  EXPECT_EQ(now.live_bytes, 8 * mib);
  EXPECT_EQ(now.mapped_bytes, 64 * mib);
  EXPECT_EQ(now.largest_free_bytes, 56 * mib);
  EXPECT_EQ(now.idle_bytes, 0u);  // never touched, so there is nothing to give back
  pool.deallocate(a, 3 * mib, 64);
  EXPECT_EQ(pool.statistics().coalesces, 0u);
  EXPECT_EQ(pool.statistics().idle_bytes, 3 * mib);
  pool.deallocate(b, 5 * mib, 64);
  now = pool.statistics();
  EXPECT_EQ(now.coalesces, 0u);        // the thread keeps the block that it freed last
  EXPECT_EQ(now.idle_bytes, 8 * mib);  // without the rest of the segment
  EXPECT_EQ(now.largest_free_bytes, 56 * mib);
  EXPECT_EQ(now.live_bytes, 0u);
  EXPECT_EQ(now.peak_live_bytes, 8 * mib);
  void* const c = pool.allocate(9 * mib, 64);
  EXPECT_EQ(c, a);
  EXPECT_EQ(pool.statistics().coalesces, 2u);
  pool.deallocate(c, 9 * mib, 64);
  pool.reset_peak();
  EXPECT_EQ(pool.statistics().peak_live_bytes, 0u);
  EXPECT_EQ(pool.trim(), 64 * mib);
  EXPECT_EQ(pool.statistics().mapped_bytes, 0u);
}

// Threads count class blocks themselves, and add the counts to the pool's later.
TEST(MemoryPool, KnowsThePeakOfBlocksThatThreadsCount) {
  pool_state pool({}, pool_state::aged_by::caller);
  void* const a = pool.allocate(64 * kib, 64);
  void* const b = pool.allocate(128 * kib, 64);
  EXPECT_EQ(pool.statistics().live_bytes, 192 * kib);
  pool.deallocate(a, 64 * kib, 64);
  EXPECT_EQ(pool.statistics().live_bytes, 128 * kib);
  EXPECT_EQ(pool.statistics().peak_live_bytes, 192 * kib);
  std::thread([&] {
    pool.deallocate(b, 128 * kib, 64);
    EXPECT_EQ(pool.statistics().live_bytes, 0u);
    EXPECT_TRUE(pool.all_clear());
  }).join();
  EXPECT_EQ(pool.statistics().live_blocks, 0u);
  EXPECT_EQ(pool.statistics().peak_live_bytes, 192 * kib);
  EXPECT_TRUE(pool.all_clear());
  pool.reset_peak();
  EXPECT_EQ(pool.statistics().peak_live_bytes, 0u);
  std::vector<void*> many;
  for (int i = 0; i < 100; ++i) many.push_back(pool.allocate(64 * kib, 64));
  for (void* const block : many) pool.deallocate(block, 64 * kib, 64);
  EXPECT_EQ(pool.statistics().peak_live_bytes, 6400 * kib);
}

TEST(MemoryPool, FitsBestAndLeavesLargeBlocksWhole) {
  pool_state pool({}, pool_state::aged_by::caller);
  std::vector<void*> blocks;
  for (const std::size_t size : {10, 2, 4, 2, 6, 2})
    blocks.push_back(pool.allocate(size * mib, 64));
  pool.deallocate(blocks[0], 10 * mib, 64);
  pool.deallocate(blocks[2], 4 * mib, 64);
  pool.deallocate(blocks[4], 6 * mib, 64);
  EXPECT_EQ(pool.allocate(5 * mib, 64), blocks[4]);
  EXPECT_EQ(pool.allocate(4 * mib, 64), blocks[2]);
  EXPECT_EQ(pool.allocate(10 * mib, 64), blocks[0]);
  for (const auto& [index, size] : {std::pair{0, 10}, {1, 2}, {2, 4}, {3, 2}, {4, 5}, {5, 2}})
    pool.deallocate(blocks[static_cast<std::size_t>(index)], static_cast<std::size_t>(size) * mib,
                    64);
  EXPECT_TRUE(pool.all_clear());
}

TEST(MemoryPool, ServesAnyAlignment) {
  pool_state pool({}, pool_state::aged_by::caller);
  ledger blocks(pool);
  for (const std::size_t bytes : {std::size_t{1}, 100 * kib, 3 * mib})
    for (std::size_t alignment = 1; alignment <= 16 * mib; alignment *= 2)
      EXPECT_TRUE(blocks.allocate(bytes, alignment));
  for (const std::size_t alignment : {std::size_t{64}, 4 * mib, 16 * mib})
    EXPECT_TRUE(blocks.allocate(300 * mib, alignment));
  expect_accounts(pool, blocks);
}

// ---- time ---------------------------------------------------------------------------------------

// heap.3
TEST(MemoryPool, GivesIdleMemoryBackInSteps) {
  pool_state pool({}, pool_state::aged_by::caller);
  void* const kept = pool.allocate(3 * mib, 64);
  for (const std::size_t bytes : {50 * kib, 40 * mib, 300 * mib}) {
    void* const block = pool.allocate(bytes, 64);
    std::memset(block, 1, std::min(bytes, 8 * mib));
    pool.deallocate(block, bytes, 64);
  }
  const auto start = pool_clock::now();
  EXPECT_GT(pool.idle_bytes(), 340 * mib);
  EXPECT_TRUE(pool.age_idle_memory(start));
  EXPECT_TRUE(pool.age_idle_memory(start + 600ms));  // empties magazines that were not used
  EXPECT_TRUE(pool.age_idle_memory(start + 2s));
  EXPECT_EQ(pool.idle_bytes(), 0u);
  EXPECT_GT(pool.statistics().mapped_bytes, 300 * mib);
  EXPECT_TRUE(pool.age_idle_memory(start + 11s));
  EXPECT_TRUE(pool.age_idle_memory(start + 12s));
  EXPECT_EQ(pool.idle_bytes(), 0u);  // and it does not increase again
  // Unmaps everything but the segment with the live block; in that segment it unmaps the other huge
  // pages.
  pool.age_idle_memory(start + 40s);
  EXPECT_FALSE(pool.age_idle_memory(start + 41s));
  EXPECT_LE(pool.statistics().mapped_bytes, 4 * mib);
  EXPECT_EQ(pool.statistics().live_bytes, 3 * mib);
  EXPECT_TRUE(pool.is_consistent());
  pool.deallocate(kept, 3 * mib, 64);
}

TEST(MemoryPool, MemoryGivenBackCanBeUsedAgain) {
  pool_state pool({}, pool_state::aged_by::caller);
  const auto start = pool_clock::now();
  for (int round = 0; round < 6; ++round) {
    ledger blocks(pool);
    for (const std::size_t bytes : {40 * kib, 40 * kib, 300 * kib, 2 * mib, 9 * mib, 257 * mib})
      EXPECT_TRUE(blocks.allocate(bytes, 64));
    blocks.release_nth(static_cast<std::size_t>(round));
    pool.age_idle_memory(start + round * 7s);
    pool.age_idle_memory(start + round * 7s + 1s);
    expect_accounts(pool, blocks);
  }
}

TEST(MemoryPool, BoundsIdleMemoryThatIsKeptYoung) {
  pool_state pool({}, pool_state::aged_by::caller);
  // Blocks that are used again and again never become old, and each time the test looks, more than
  // the bound is idle.
  auto now = pool_clock::now();
  for (int tick = 0; tick < 6; ++tick) {
    std::vector<void*> blocks;
    for (int i = 0; i < 10; ++i) blocks.push_back(pool.allocate(20 * mib, 64));
    for (void* const block : blocks) pool.deallocate(block, 20 * mib, 64);
    now = pool_clock::now() + 500ms * tick;
    pool.age_idle_memory(now);
    if (tick >= 3) {
      EXPECT_LE(pool.idle_bytes(), 64 * mib) << tick;
    }
  }
}

TEST(MemoryPool, GivesIdleMemoryBackWhenItIsShort) {
  struct short_of_memory {
    short_of_memory()
        : before(detail::exchange_memory_probe([]() -> detail::system_memory {
            return {.total_bytes = 1000 * mib, .available_bytes = mib};
          })) {}
    ~short_of_memory() { detail::exchange_memory_probe(before); }
    detail::memory_probe before;
  } const for_now;
  memory_pool pool;
  void* const kept = pool.allocate(3 * mib);
  for (const std::size_t bytes : {100 * kib, 20 * mib, 300 * mib})
    pool.deallocate(pool.allocate(bytes), bytes);
  // Age alone unmaps nothing before half a minute has passed.
  const auto start = pool_clock::now();
  while (pool.statistics().mapped_bytes > 4 * mib && pool_clock::now() < start + 20s)
    std::this_thread::sleep_for(10ms);
  EXPECT_LE(pool.statistics().mapped_bytes, 4 * mib);
  EXPECT_EQ(pool.statistics().live_bytes, 3 * mib);
  pool.deallocate(kept, 3 * mib);
}

TEST(MemoryPool, HousekeepingRunsByItself) {
  memory_pool pool;
  pool.deallocate(pool.allocate(100 * mib), 100 * mib);
  pool.deallocate(pool.allocate(100 * kib), 100 * kib);
  EXPECT_GT(pool.statistics().idle_bytes, 64 * mib);
  for (int i = 0; i < 600 && pool.statistics().idle_bytes > 0; ++i)
    std::this_thread::sleep_for(50ms);
  EXPECT_EQ(pool.statistics().idle_bytes, 0u);
}

}  // namespace
}  // namespace shale
