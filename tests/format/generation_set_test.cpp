#include "format/bytes/generation_set.hpp"

#include <gtest/gtest.h>

#include <bitset>
#include <random>

namespace shale::format {
namespace {

constexpr std::uint64_t generations = 48;

// One bit for each generation.
using plain_generations = std::bitset<generations>;

void expect_same(const generation_set& set, const plain_generations& plain) {
  plain_generations seen;
  std::uint64_t before = 0;
  for (const generation_range& range : set.ranges()) {
    ASSERT_LE(range.first, range.last);
    ASSERT_TRUE(seen.none() || range.first > before + 1) << "two ranges touch at " << range.first;
    for (std::uint64_t generation = range.first; generation <= range.last; ++generation)
      seen.set(generation);
    before = range.last;
  }
  ASSERT_EQ(seen, plain);
  for (std::uint64_t first = 0; first < generations; ++first) {
    bool any = false;
    ASSERT_FALSE(set.overlaps(first, first));
    for (std::uint64_t end = first + 1; end <= generations; ++end) {
      any = any || plain[end - 1];
      ASSERT_EQ(set.overlaps(first, end), any) << first << " to " << end;
    }
  }
}

TEST(GenerationSet, IsTheSameForRangesInAnyOrder) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 500; ++round) {
    SCOPED_TRACE(round);
    std::vector<generation_range> ranges;
    plain_generations plain;
    for (std::uint64_t count = random() % 12; count > 0; --count) {
      const std::uint64_t first = random() % generations;
      const std::uint64_t last = first + random() % (generations - first) / (1 + random() % 8);
      ranges.push_back({first, last});
      for (std::uint64_t generation = first; generation <= last; ++generation)
        plain.set(generation);
    }
    ASSERT_NO_FATAL_FAILURE(expect_same(generation_set(ranges), plain));
  }
}

// Readers of neighbouring generations are reported one by one.
TEST(GenerationSet, JoinsNeighbours) {
  std::vector<generation_range> alone;
  for (std::uint64_t generation = 10'000; generation > 0; --generation)
    alone.push_back({generation, generation});
  EXPECT_EQ(generation_set(alone).ranges(), (std::vector<generation_range>{{1, 10'000}}));
}

// A hostile file may list any number.
TEST(GenerationSet, HoldsTheLargestNumber) {
  const generation_set set({{UINT64_MAX, UINT64_MAX}, {0, 0}, {UINT64_MAX - 1, UINT64_MAX}});
  EXPECT_EQ(set.ranges(), (std::vector<generation_range>{{0, 0}, {UINT64_MAX - 1, UINT64_MAX}}));
  EXPECT_TRUE(set.overlaps(0, 1));
  EXPECT_FALSE(set.overlaps(1, UINT64_MAX - 1));
  EXPECT_TRUE(set.overlaps(1, UINT64_MAX));
}

}  // namespace
}  // namespace shale::format
