// Compares the heap of the pool with a model that knows nothing about bins, hashes and lists.
#include "storage/pool/heap/segment_heap.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "storage/pool/heap/shared_heaps.hpp"
#include "support/long_run.hpp"
#include "support/system_page.hpp"

namespace shale::detail {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;
constexpr std::size_t granule = detail::granule_bytes;

// The unit of block sizes: no two blocks may share a page of the system.
const std::size_t unit = std::max(granule, test::system_page_bytes());

// A heap and its owner's records about it.
class modelled_heap {
 public:
  modelled_heap(segment_heap::cutting how, std::size_t limit, std::uint64_t seed)
      : quota(limit), heap(quota, how), random(seed), how_(how) {}
  ~modelled_heap() {
    while (!live.empty()) free_any();
    heap.trim();
    EXPECT_EQ(quota.held_bytes(), 0u);
  }

  void allocate(std::size_t bytes, std::size_t alignment) {
    const std::size_t before = quota.held_bytes();
    const auto [found, mapped] = heap.allocate(bytes, alignment, now);
    ASSERT_EQ(mapped, quota.held_bytes() > before);
    if (found != nullptr) {
      hold(*found, bytes, alignment);
    } else {
      // It may fail only if the limit has no room.
      ASSERT_GT(before + (bytes + unit - 1) / unit * unit, quota.limit_bytes());
    }
  }
  void reuse(std::size_t bytes, std::size_t alignment) {
    const std::size_t before = quota.held_bytes();
    if (auto* const found = heap.reuse(bytes, alignment)) hold(*found, bytes, alignment);
    ASSERT_EQ(quota.held_bytes(), before);
  }
  void reuse_dirty(std::size_t bytes, std::size_t alignment) {
    const std::size_t before = heap.dirty_bytes();
    if (auto* const found = heap.reuse_dirty(bytes, alignment)) {
      hold(*found, bytes, alignment);
      ASSERT_GE(found->dirty_bytes(), bytes);
      ASSERT_EQ(heap.dirty_bytes() + found->dirty_bytes(), before);
    }
  }
  void free_any() {
    const auto victim =
        std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
    const auto [address, bytes] = *victim;
    live.erase(victim);  // first, so that the destructor ends when the heap is wrong
    auto& block = heap.find(address);
    ASSERT_EQ(block.address, address);
    ASSERT_EQ(block.bytes, bytes);
    heap.free(block, random() % 4 == 0 ? memory_state::none : memory_state::dirty, now);
  }
  void age_some() {
    for (auto steps = random() % 4; steps > 0 && heap.age(cursor, now, ages); --steps) {
    }
  }
  void age_oldest() {
    const auto oldest = only_lazy_from(heap.age_of_oldest(1, now));
    std::byte* address = nullptr;
    const std::size_t before = heap.dirty_bytes();
    while (before > 0 && heap.dirty_bytes() == before) ASSERT_TRUE(heap.age(address, now, oldest));
    cursor = address;
  }
  void age_all() {
    std::byte* address = nullptr;
    while (heap.age(address, now + ages.lazy, ages)) {
    }
    cursor = address;
    ASSERT_EQ(heap.dirty_bytes(), 0u);
  }

  void expect_accounts() const {
    ASSERT_TRUE(heap.is_consistent());
    std::size_t bytes = 0;
    const std::byte* end = nullptr;
    for (const auto& [address, size] : live) {
      ASSERT_GE(address, end);
      end = address + size;
      bytes += size;
    }
    ASSERT_EQ(bytes + heap.free_bytes(), quota.held_bytes());
    ASSERT_LE(heap.dirty_bytes(), heap.free_bytes());
    ASSERT_LE(heap.largest_free_bytes(), heap.free_bytes());
  }

  memory_quota quota;
  segment_heap heap;
  std::mt19937_64 random;
  pool_clock::time_point now = pool_clock::now();
  std::map<std::byte*, std::size_t> live;
  std::byte* cursor = nullptr;
  const decay_ages ages;

 private:
  void hold(const segment_heap::block& found, std::size_t bytes, std::size_t alignment) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(found.address) % alignment, 0u);
    EXPECT_GE(found.bytes, bytes);
    const std::size_t waste = found.bytes - bytes;
    EXPECT_LT(waste, how_ == segment_heap::cutting::to_size ? unit : bytes / 8 + 2 * mib);
    EXPECT_TRUE(live.emplace(found.address, found.bytes).second);
  }

  const segment_heap::cutting how_;
};

class SegmentHeapOf : public testing::TestWithParam<segment_heap::cutting> {};

// heap.1, heap.3
TEST_P(SegmentHeapOf, KeepsItsAccountsOverRandomSequences) {
  const int seeds = test::run_long() ? 400 : 20;
  for (int seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    const std::size_t limit = seed % 3 == 0 ? 200 * mib : 0;
    modelled_heap tested(GetParam(), limit, static_cast<std::uint64_t>(seed));
    auto& random = tested.random;
    for (int step = 0; step < 2000; ++step) {
      const std::size_t bytes =
          1 + static_cast<std::size_t>(std::exp2(static_cast<double>(random() % 2600) / 100.0));
      const std::size_t alignment = random() % 3 != 0 ? 64 : std::size_t{1} << (random() % 25);
      const bool growing =
          tested.live.size() < 20 || (step / 250 % 2 == 0 && tested.live.size() < 200);
      const auto action = random() % 32;
      if (action < (growing ? 12u : 6u)) tested.allocate(bytes, alignment);
      else if (action < (growing ? 16u : 8u)) tested.reuse(bytes, alignment);
      else if (action < (growing ? 20u : 10u)) tested.reuse_dirty(bytes, alignment);
      else if (action < 26 && !tested.live.empty()) tested.free_any();
      else if (action < 28) tested.age_some();
      else if (action < 29) tested.now += std::chrono::milliseconds(random() % 12'000);
      else if (action < 30) tested.age_oldest();
      else if (action == 30 && random() % 8 == 0) tested.age_all();
      else if (action == 31 && random() % 8 == 0) tested.heap.trim();
      tested.expect_accounts();
      if (HasFatalFailure()) return;
      if (random() % 8 == 0) tested.cursor = nullptr;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cuts, SegmentHeapOf,
                         testing::Values(segment_heap::cutting::to_size,
                                         segment_heap::cutting::never),
                         [](const auto& block) {
                           return block.param == segment_heap::cutting::never ? "Never" : "ToSize";
                         });

TEST(SegmentHeap, HandsOutWhatIsDirtyIfAsked) {
  memory_quota quota{0};
  segment_heap heap(quota, segment_heap::cutting::to_size);
  const auto now = pool_clock::now();
  EXPECT_EQ(heap.reuse_dirty(unit, 64), nullptr);
  auto* const first = heap.allocate(4 * mib, 64, now).found;
  auto* const second = heap.allocate(mib, 64, now).found;
  auto* const third = heap.allocate(6 * mib, 64, now).found;
  auto* const fourth = heap.allocate(mib, 64, now).found;
  EXPECT_EQ(heap.reuse_dirty(unit, 64), nullptr);  // the rest of the segment was never touched
  std::byte* const clean = first->address;
  std::byte* const dirty = third->address;
  heap.free(*first, memory_state::none, now);
  heap.free(*third, memory_state::dirty, now);
  // The best fit is not the block with resident memory.
  auto* const backed = heap.reuse_dirty(3 * mib, 64);
  ASSERT_NE(backed, nullptr);
  EXPECT_EQ(backed->address, dirty);
  EXPECT_EQ(backed->dirty_bytes(), 3 * mib);
  EXPECT_EQ(heap.reuse_dirty(4 * mib, 64), nullptr);
  auto* const unbacked = heap.reuse(4 * mib, 64);
  ASSERT_NE(unbacked, nullptr);
  EXPECT_EQ(unbacked->address, clean);
  EXPECT_EQ(unbacked->dirty_bytes(), 0u);
  // After it is joined with untouched memory, only its front is dirty.
  std::byte* const last = fourth->address;
  heap.free(*fourth, memory_state::dirty, now);
  EXPECT_EQ(heap.reuse(3 * mib, 64)->address, dirty + 3 * mib);
  EXPECT_EQ(heap.reuse_dirty(2 * mib, 64), nullptr);
  EXPECT_EQ(heap.reuse_dirty(mib, 64)->address, last);
  // Memory that the system may take is not certainly resident.
  heap.free(*second, memory_state::dirty, now);
  std::byte* cursor = nullptr;
  while (heap.age(cursor, now, only_lazy_from(heap.age_of_oldest(1, now)))) {
  }
  EXPECT_EQ(heap.reuse_dirty(unit, 64), nullptr);
}

// Compares with a walk over the blocks in the order of their ages.
TEST(SegmentHeap, TellsFromWhichAgeOnBlocksHaveSoManyBytes) {
  memory_quota quota{0};
  segment_heap heap(quota, segment_heap::cutting::to_size);
  const auto now = pool_clock::now();
  std::mt19937_64 random(1);
  std::map<std::int64_t, std::size_t, std::greater<>> dirty_bytes;  // by the age in milliseconds
  std::vector<segment_heap::block*> blocks;
  for (int i = 0; i < 100; ++i) {
    blocks.push_back(heap.allocate((1 + random() % 7) * unit, 64, now).found);
    heap.allocate(unit, 64, now);
  }
  std::size_t total = 0;
  for (auto* const block : blocks) {
    const auto age = static_cast<std::int64_t>(random() % ages_told_apart_ms);
    dirty_bytes[age] += block->bytes;
    total += block->bytes;
    heap.free(*block, memory_state::dirty, now - std::chrono::milliseconds(age) - 300us);
  }
  for (const std::size_t wanted : {unit, total / 7, total / 2, total - unit, total}) {
    std::size_t found = 0;
    auto oldest = dirty_bytes.begin();
    while ((found += oldest->second) < wanted) ++oldest;
    EXPECT_EQ(heap.age_of_oldest(wanted, now).count(), oldest->first) << wanted;
  }
  EXPECT_EQ(heap.age_of_oldest(total + 1, now).count(), 0);
  EXPECT_EQ(heap.age_of_oldest(1, now + 1h).count(), std::int64_t{ages_told_apart_ms} - 1);
  EXPECT_EQ(heap.age_of_oldest(total, now - 1h).count(), 0) << "blocks that were freed meanwhile";
}

// Many blocks of one size, each beside a live one. `age_of(number)` says for how many milliseconds
// a block has been free.
class FreedBlocks : public testing::Test {
 protected:
  template <class AgeOf>
  void free_blocks(int count, AgeOf age_of) {
    const shared_heaps::hold held(heaps_);
    for (int i = 0; i < count; ++i) {
      freed_.push_back(held.segments().allocate(bytes, 64, now_).found);
      held.segments().allocate(bytes, 64, now_);
    }
    for (int i = 0; i < count; ++i)
      held.segments().free(*freed_[static_cast<std::size_t>(i)], memory_state::dirty,
                           now_ - std::chrono::milliseconds(age_of(i)));
  }
  bool is_dirty(std::size_t number) const { return freed_[number]->memory == memory_state::dirty; }
  std::size_t count_dirty() const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < freed_.size(); ++i) count += is_dirty(i) ? 1 : 0;
    return count;
  }

  static constexpr std::size_t bytes = 64 * kib;
  const pool_clock::time_point now_ = pool_clock::now();
  memory_quota quota_{0};
  shared_heaps heaps_{quota_};
  std::vector<segment_heap::block*> freed_;
};

TEST_F(FreedBlocks, LoseMemoryOldestFirstUntilTheExcessIsGone) {
  free_blocks(400, [](int number) { return number; });
  heaps_.age_oldest(0, now_);
  EXPECT_EQ(count_dirty(), 400u);
  heaps_.age_oldest(100 * bytes, now_);
  EXPECT_EQ(count_dirty(), 300u);
  EXPECT_TRUE(is_dirty(299));
  EXPECT_FALSE(is_dirty(300));
  heaps_.age_oldest(100 * bytes + 1, now_);
  EXPECT_EQ(count_dirty(), 199u);
  EXPECT_TRUE(is_dirty(198));
  heaps_.age_oldest(10'000 * bytes, now_);
  EXPECT_EQ(count_dirty(), 0u);
  EXPECT_EQ(shared_heaps::hold(heaps_).dirty_bytes(), 0u);
}

TEST_F(FreedBlocks, OfOneMillisecondLoseMemoryAfterOlderOnes) {
  free_blocks(100, [](int number) { return number == 99 ? 6 : 5; });
  heaps_.age_oldest(10 * bytes, now_);
  EXPECT_EQ(count_dirty(), 90u);
  EXPECT_FALSE(is_dirty(99));
}

// The search looks at some of the blocks that may contain an aligned part, and then at one that
// must contain it.
TEST(SegmentHeap, FindsAlignedRoomBehindManyUnsuitableBlocks) {
  memory_quota quota{0};
  segment_heap heap(quota, segment_heap::cutting::to_size);
  const auto now = pool_clock::now();
  heap.allocate(unit, 64, now);
  std::vector<segment_heap::block*> holes;
  for (std::size_t i = 0; i < 100; ++i) {
    holes.push_back(heap.allocate((1 + i % 5) * unit, 64, now).found);
    heap.allocate(unit, 64, now);
  }
  for (auto* const hole : holes) heap.free(*hole, memory_state::dirty, now);
  const auto* const found = heap.reuse(unit, 16 * mib);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(found->address) % (16 * mib), 0u);
  EXPECT_TRUE(heap.is_consistent());
}

// A sweep looks at few blocks per step, and continues after them whatever happened to the block at
// which it stopped.
TEST(SegmentHeap, SweepsGoOnAmongBlocksThatComeAndGo) {
  memory_quota quota{0};
  segment_heap heap(quota, segment_heap::cutting::to_size);
  const auto start = pool_clock::now();
  const decay_ages ages;
  constexpr int count = 5 * segment_heap::step_blocks;
  std::vector<segment_heap::block*> blocks;
  for (int i = 0; i < count; ++i) blocks.push_back(heap.allocate(unit, 64, start).found);
  std::byte* cursor = nullptr;
  std::mt19937 random(1);
  int steps = 0;
  for (; heap.age(cursor, start, ages); ++steps) {
    ASSERT_LT(steps, 5);
    // The next block of the sweep disappears, and so do its neighbours.
    const auto found = std::find_if(blocks.begin(), blocks.end(), [&](const auto* block) {
      return block != nullptr && block->address == cursor;
    });
    ASSERT_NE(found, blocks.end());
    for (const std::ptrdiff_t near : {1, -1, 0, 2}) {
      heap.free(*found[near], memory_state::dirty, start);
      found[near] = nullptr;
      ASSERT_TRUE(heap.is_consistent());
    }
  }
  EXPECT_EQ(steps, 4);
  EXPECT_EQ(heap.dirty_bytes(), 16 * unit);
  cursor = nullptr;
  int lazy = 0;
  for (std::size_t dirty = heap.dirty_bytes(); heap.age(cursor, start + ages.lazy, ages);
       dirty = heap.dirty_bytes())
    lazy += heap.dirty_bytes() < dirty ? 1 : 0;
  EXPECT_EQ(lazy, 4);
  EXPECT_EQ(heap.dirty_bytes(), 0u);
  EXPECT_FALSE(heap.age(cursor, start + ages.lazy, ages));
}

// The parts of a mapping with a hole never join another mapping that the system places in the hole.
TEST(SegmentHeap, JoinsNothingAcrossHoles) {
  memory_quota quota{0};
  segment_heap heap(quota, segment_heap::cutting::to_size);
  const auto now = pool_clock::now();
  std::vector<segment_heap::block*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(heap.allocate(8 * mib, 64, now).found);
  for (const int number : {0, 3, 4})
    heap.free(*blocks[static_cast<std::size_t>(number)], memory_state::none, now);
  EXPECT_EQ(heap.trim(), 24 * mib);
  EXPECT_TRUE(blocks[1]->leads);
  EXPECT_TRUE(blocks[5]->leads);
  // A mapping of less than a segment fits into the holes, whether or not the system places it
  // there.
  quota.set_limit_bytes(quota.held_bytes() + 16 * mib);
  auto* const fresh = heap.allocate(16 * mib, 64, now).found;
  ASSERT_NE(fresh, nullptr);
  for (const int number : {1, 2, 5, 6, 7})
    heap.free(*blocks[static_cast<std::size_t>(number)], memory_state::none, now);
  heap.free(*fresh, memory_state::none, now);
  EXPECT_TRUE(heap.is_consistent());
  EXPECT_EQ(heap.largest_free_bytes(), 24 * mib);
  EXPECT_EQ(heap.free_bytes(), 56 * mib);
}

// A heap with blocks that fill two segments, in address order.
class segments_of_blocks {
 public:
  segments_of_blocks() {
    while (quota.held_bytes() <= 2 * segment_heap::segment_bytes) {
      auto* const next = heap.allocate(bytes, 64, now).found;
      if (quota.held_bytes() > 2 * segment_heap::segment_bytes) heap.free(*next, untouched, now);
      else blocks.push_back(next);
    }
    heap.trim();
    std::sort(blocks.begin(), blocks.end(),
              [](const auto* a, const auto* b) { return a->address < b->address; });
  }

  static constexpr auto untouched = memory_state::none;
  static constexpr std::size_t bytes = segment_heap::segment_bytes / 256;
  const pool_clock::time_point now = pool_clock::now();
  memory_quota quota{0};
  segment_heap heap{quota, segment_heap::cutting::to_size};
  std::vector<segment_heap::block*> blocks;
};

// heap.1
TEST(SegmentHeap, JoinsFreeNeighboursOfOneMapping) {
  segments_of_blocks tested;
  ASSERT_EQ(tested.blocks.size(), 512u);
  std::mt19937 random(1);
  std::shuffle(tested.blocks.begin(), tested.blocks.end(), random);
  for (auto* const block : tested.blocks) {
    tested.heap.free(*block, tested.untouched, tested.now);
    ASSERT_TRUE(tested.heap.is_consistent());
  }
  EXPECT_EQ(tested.heap.free_bytes(), tested.quota.held_bytes());
  // Segments may be adjacent, but a block that is joined with the unused end of another segment
  // would be the last to be used again.
  EXPECT_EQ(tested.heap.largest_free_bytes(), segment_heap::segment_bytes);
}

// heap.3
TEST(SegmentHeap, AgesLargeBlocksInSteps) {
  memory_quota quota{0};
  segment_heap heap{quota, segment_heap::cutting::to_size};
  const auto start = pool_clock::now();
  constexpr std::size_t step = segment_heap::step_bytes;
  auto* const large = heap.allocate(5 * step + mib, 64, start).found;
  std::byte* const first = large->address;
  heap.free(*large, memory_state::dirty, start);
  const decay_ages ages;
  std::byte* cursor = nullptr;
  EXPECT_FALSE(heap.age(cursor, start + ages.lazy - 1ms, ages));
  // Each step treats one part of the block. If the block is used in between, the steps begin anew.
  EXPECT_TRUE(heap.age(cursor, start + ages.lazy, ages));
  EXPECT_EQ(cursor, first + step);
  EXPECT_TRUE(heap.age(cursor, start + ages.lazy, ages));
  EXPECT_EQ(cursor, first + 2 * step);
  EXPECT_GT(heap.dirty_bytes(), 0u);
  auto* const used = heap.allocate(mib, 64, start).found;
  heap.free(*used, memory_state::dirty, start);
  EXPECT_FALSE(heap.age(cursor, start + ages.lazy, ages));
  cursor = nullptr;
  int steps = 0;
  while (heap.age(cursor, start + ages.lazy, ages)) ++steps;
  EXPECT_EQ(steps, 6);
  EXPECT_EQ(heap.dirty_bytes(), 0u);
  cursor = nullptr;
  for (steps = 0; heap.age(cursor, start + ages.drop, ages); ++steps) EXPECT_TRUE(heap.is_ageing());
  EXPECT_EQ(steps, 6);
  cursor = nullptr;
  for (steps = 0; heap.age(cursor, start + ages.unmap, ages); ++steps) {
    EXPECT_TRUE(heap.is_consistent());
  }
  EXPECT_EQ(steps, 6);
  EXPECT_EQ(quota.held_bytes(), 0u);
  EXPECT_FALSE(heap.is_ageing());
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they end if malloc fails
// The result of `work` in a child process in which no allocation succeeds.
template <class Work>
int without_memory(Work work) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_AS, &none);
    void* volatile taken = nullptr;
    for (std::size_t bytes = mib; bytes > 0; bytes = bytes > 4 * kib ? bytes / 2 : bytes - 8) do
        taken = std::malloc(bytes);
      while (taken != nullptr);
    ::_exit(work());
  }
  int status = -1;
  if (child > 0) ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// heap.2
TEST(SegmentHeap, FreesWhenThereIsNothingToAllocate) {
  segments_of_blocks tested;
  EXPECT_EQ(without_memory([&] {
              for (std::size_t i = 0; i < tested.blocks.size(); ++i)
                tested.heap.free(*tested.blocks[i * 7 % tested.blocks.size()], tested.untouched,
                                 tested.now);
              return tested.heap.free_bytes() == tested.quota.held_bytes() &&
                             tested.heap.is_consistent()
                         ? 0
                         : 1;
            }),
            0);
}

// heap.2
TEST(SegmentHeap, RefusesBlocksThatItsTableHasNoRoomFor) {
  memory_quota quota{0};
  segment_heap heap(quota, segment_heap::cutting::to_size);
  const auto now = pool_clock::now();
  // Each aligned block leaves a gap in front of it, so there are as many free as live blocks.
  std::vector<segment_heap::block*> live;
  live.reserve(4000);
  for (int i = 0; i < 1000; ++i) live.push_back(heap.allocate(unit, 4 * unit, now).found);
  EXPECT_EQ(without_memory([&] {
              while (auto* const more = heap.reuse(3 * unit, 64)) live.push_back(more);
              int wrong = live.size() > 1500 && heap.free_bytes() > 200 * unit ? 0 : 1;
              if (heap.allocate(unit, 64, now).found != nullptr) wrong |= 2;
              if (!heap.is_consistent()) wrong |= 4;
              for (auto* const block : live) {
                if (&heap.find(block->address) != block) wrong |= 8;
                heap.free(*block, memory_state::dirty, now);
              }
              if (!heap.is_consistent() || heap.free_bytes() != quota.held_bytes()) wrong |= 16;
              if (heap.reuse(unit, 64) == nullptr) wrong |= 32;
              return wrong;
            }),
            0);
}

// heap.2
TEST(SegmentHeap, HandsOutLargerBlocksWithoutMemoryToCutThem) {
  memory_quota quota{0};
  segment_heap heap(quota, segment_heap::cutting::to_size);
  const auto now = pool_clock::now();
  std::vector<segment_heap::block*> live;
  live.reserve(4000);
  for (int i = 0; i < 1500; ++i) live.push_back(heap.allocate(unit, 64, now).found);
  EXPECT_EQ(without_memory([&] {
              while (auto* const more = heap.reuse(unit, 64)) live.push_back(more);
              int wrong = live.back()->bytes > mib && heap.free_bytes() == 0 ? 0 : 1;
              if (!heap.is_consistent()) wrong |= 2;
              heap.free(*live.back(), memory_state::dirty, now);
              live.pop_back();
              // The part before an aligned address cannot be cut off either.
              if (heap.reuse(unit, mib) != nullptr) wrong |= 4;
              for (auto* const block : live) heap.free(*block, memory_state::dirty, now);
              if (!heap.is_consistent() || heap.free_bytes() != quota.held_bytes()) wrong |= 8;
              if (heap.trim() == 0 || quota.held_bytes() != 0) wrong |= 16;
              return wrong;
            }),
            0);
}
#endif

}  // namespace
}  // namespace shale::detail
