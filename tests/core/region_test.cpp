#include "shale/region.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "shale/error.hpp"

namespace shale {
namespace {

constexpr index_t top = std::numeric_limits<index_t>::max();

std::string text_of(const region& part, const dims& shape) {
  try {
    require_inside(part, shape);
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::invalid_argument);
    return failure.what();
  }
  return "";
}

TEST(Region, PrintsItsEndsAsSlices) {
  EXPECT_EQ(to_string(region{{2, 0}, {3, 10}}), "[2:5, 0:10]");
  EXPECT_EQ(to_string(region{}), "[]");
}

TEST(Region, PrintsListsWhereSlicesCannotSayIt) {
  EXPECT_EQ(to_string(region{{1}, {3, 4}}), "start (1,), shape (3, 4)");
  EXPECT_EQ(to_string(region{{1, 2}, {}}), "start (1, 2), shape ()");
  EXPECT_EQ(to_string(region{{0, 1}, {5, top}}), "start (0, 1), shape (5, 9223372036854775807)");
  EXPECT_EQ(to_string(region{{-1}, {top}}), "[-1:9223372036854775806]");
}

TEST(Region, AllHoldsEveryIndex) {
  EXPECT_EQ(region::all({3, 4}), (region{{0, 0}, {3, 4}}));
  EXPECT_EQ(text_of(region::all({3, 0}), {3, 0}), "");
}

// Tries every range of a small axis and compares the answer with its first and last index.
TEST(Region, IsInsideWhereEveryIndexIs) {
  for (index_t extent = 0; extent <= 4; ++extent)
    for (index_t start = -2; start <= 6; ++start)
      for (index_t length = -1; length <= 6; ++length) {
        const bool inside = start >= 0 && length >= 0 && start + length <= extent;
        EXPECT_EQ(text_of({{1, start}, {1, length}}, {2, extent}) == "", inside)
            << extent << ' ' << start << ' ' << length;
      }
}

TEST(Region, RefusalsNameTheAxis) {
  EXPECT_EQ(text_of({{0, 3}, {1, 2}}, {5, 4}),
            "a region lies outside the array [invalid_argument]\n"
            "  axis 1 has 4 positions, wanted 2 from 3");
  EXPECT_EQ(text_of({{0}, {1}}, {5, 4}),
            "a region's rank is not the array's [invalid_argument]\n"
            "  the region has 1 axes, the array 2\n"
            "  [0:1]");
  EXPECT_EQ(text_of({{0}, {1, 2}}, {5, 4}),
            "a region's rank is not the array's [invalid_argument]\n"
            "  the region has 2 axes, the array 2\n"
            "  start (0,), shape (1, 2)");
  EXPECT_NE(text_of({{top}, {top}}, {top}), "");
}

}  // namespace
}  // namespace shale
