#include "format/bytes/range_set.hpp"

#include <gtest/gtest.h>

#include <bitset>
#include <iterator>
#include <random>

namespace shale::format {
namespace {

constexpr std::uint64_t bytes = 64;

// One bit for each byte.
using plain_set = std::bitset<bytes>;

void expect_same(const range_set& set, const plain_set& plain) {
  plain_set seen;
  std::uint64_t before = 0;
  for (const auto& [first, end] : set.ranges()) {
    ASSERT_LT(first, end);
    ASSERT_TRUE(seen.none() || first > before) << "two ranges touch at " << first;
    for (std::uint64_t byte = first; byte < end; ++byte) seen.set(byte);
    before = end;
  }
  ASSERT_EQ(seen, plain);
}

TEST(RangeSet, UnitesRangesOfAnyPosition) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 500; ++round) {
    range_set set;
    plain_set plain;
    for (int step = 0; step < 12; ++step) {
      const std::uint64_t first = random() % bytes;
      const std::uint64_t end = first + random() % (bytes + 1 - first) / (1 + random() % 8);
      set.unite(first, end);
      for (std::uint64_t byte = first; byte < end; ++byte) plain.set(byte);
      ASSERT_NO_FATAL_FAILURE(expect_same(set, plain)) << round;
    }
  }
}

TEST(RangeSet, AddsAndSubtractsRanges) {
  std::mt19937_64 random(2);
  range_set set;
  plain_set plain;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t first = random() % bytes;
    std::uint64_t end = first;
    // As far as all bytes are of one kind.
    while (end < bytes && plain[end] == plain[first] && random() % 8 != 0) ++end;
    const bool contained = plain[first];
    if (first < end) {
      ASSERT_EQ(set.contains(first, end), contained);
      ASSERT_EQ(set.overlaps(first, end), contained);
      std::uint64_t run = first;
      while (run < bytes && plain[run] == contained) ++run;
      ASSERT_EQ(set.end_of_run(first), run == bytes && !contained ? UINT64_MAX : run);
    }
    if (contained) set.subtract(first, end);
    else set.add(first, end);
    for (std::uint64_t byte = first; byte < end; ++byte) plain.flip(byte);
    ASSERT_NO_FATAL_FAILURE(expect_same(set, plain)) << step;
  }
}

}  // namespace
}  // namespace shale::format
