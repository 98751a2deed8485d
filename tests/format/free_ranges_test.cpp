// Compares free ranges with a plain list of granules.

#include "format/space/free_ranges.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace shale::format {
namespace {

constexpr std::uint64_t granule = 1024;
constexpr std::size_t granules = 200;

// The oracle: one flag per granule, and answers that it finds by looking at every granule.
struct plain_space {
  std::vector<bool> free = std::vector<bool>(granules, false);

  std::vector<byte_interval> ranges() const {
    std::vector<byte_interval> found;
    for (std::size_t i = 0; i < granules; ++i) {
      if (!free[i]) continue;
      if (i > 0 && free[i - 1]) found.back().end += granule;
      else found.push_back({i * granule, (i + 1) * granule});
    }
    return found;
  }

  static std::uint64_t pages_of(const byte_interval& range) {
    std::uint64_t bytes = 0;
    for (std::uint64_t offset = 0; offset < granules * granule; offset += page_bytes)
      if (offset >= range.first && offset + page_bytes <= range.end) bytes += page_bytes;
    return bytes;
  }
};

void expect_same(const free_ranges& ranges, const plain_space& plain) {
  const auto expected = plain.ranges();
  ASSERT_EQ(ranges.ranges().size(), expected.size());
  std::uint64_t total = 0;
  std::uint64_t most = 0;
  for (const auto& [first, end] : expected) {
    const auto found = ranges.ranges().find(first);
    ASSERT_NE(found, ranges.ranges().end()) << first;
    EXPECT_EQ(found->second, end);
    EXPECT_EQ(ranges.beginning_of(end), first);
    total += plain_space::pages_of({first, end});
    most = std::max(most, plain_space::pages_of({first, end}));
  }
  EXPECT_EQ(ranges.page_total(), total);
  const auto largest = ranges.largest();
  EXPECT_EQ(largest ? largest->end - largest->first : 0, most);
}

TEST(FreeRanges, AreThoseOfAPlainList) {
  std::mt19937 random(7);
  for (int run = 0; run < 20; ++run) {
    free_ranges ranges;
    plain_space plain;
    // Every other run begins with ranges that were read from a file.
    if (run % 2 == 1)
      for (std::size_t i = 0; i < granules; ++i) plain.free[i] = random() % 3 == 0;
    for (const auto& [first, end] : plain.ranges()) ranges.append(first, end);
    expect_same(ranges, plain);
    EXPECT_TRUE(ranges.take_touched().empty());
    for (int step = 0; step < 200; ++step) {
      const std::size_t first = random() % granules;
      const std::size_t end = std::min<std::size_t>(granules, first + random() % 12);
      const auto begin = plain.free.begin() + static_cast<std::ptrdiff_t>(first);
      const auto to = plain.free.begin() + static_cast<std::ptrdiff_t>(end);
      const auto count = static_cast<std::size_t>(std::count(begin, to, true));
      if (count == 0) ranges.add(first * granule, end * granule);
      else if (count == end - first) ranges.take(first * granule, end * granule);
      else continue;
      std::fill(begin, to, count == 0);
      expect_same(ranges, plain);
    }
  }
}

TEST(FreeRanges, GiveTheSmallestThatFits) {
  free_ranges ranges;
  ranges.add(0, 3 * page_bytes);
  ranges.add(4 * page_bytes, 6 * page_bytes);
  ranges.add(7 * page_bytes + granule, 9 * page_bytes);  // one whole page
  EXPECT_EQ(ranges.find(page_bytes, page_bytes), 8 * page_bytes);
  EXPECT_EQ(ranges.find(2 * page_bytes, page_bytes), 4 * page_bytes);
  EXPECT_EQ(ranges.find(3 * page_bytes, page_bytes), 0u);
  EXPECT_EQ(ranges.find(4 * page_bytes, page_bytes), std::nullopt);
  EXPECT_EQ(ranges.find(2 * page_bytes, 8 * page_bytes), 0u);
  EXPECT_EQ(ranges.beginning_of(5 * page_bytes), std::nullopt);
}

// The space map compares its entries with the tree only at these offsets.
TEST(FreeRanges, TellWhereRangesBeganOrBegin) {
  free_ranges ranges;
  ranges.add(granule, 2 * granule);
  ranges.add(3 * granule, 4 * granule);
  EXPECT_EQ(ranges.take_touched(), (std::set<std::uint64_t>{granule, 3 * granule}));
  ranges.add(2 * granule, 3 * granule);  // joins both
  EXPECT_EQ(ranges.take_touched(), (std::set<std::uint64_t>{granule, 3 * granule}));
  ranges.take(2 * granule, 3 * granule);  // parts them again
  EXPECT_EQ(ranges.take_touched(), (std::set<std::uint64_t>{granule, 3 * granule}));
  ranges.add(granule, granule);
  ranges.take(3 * granule, 3 * granule);
  EXPECT_TRUE(ranges.take_touched().empty());
}

}  // namespace
}  // namespace shale::format
