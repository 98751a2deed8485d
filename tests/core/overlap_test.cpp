#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "shale/error.hpp"
#include "shale/layout.hpp"
#include "support/index_oracle.hpp"
#include "support/random_layouts.hpp"

namespace shale {
namespace {

using test::index_list;
using test::random_choices;

index_list positions_of(const layout& view) {
  return test::index_oracle::strided({view.shape().begin(), view.shape().end()},
                                     {view.strides().begin(), view.strides().end()}, view.offset())
      .positions;
}

bool repeats(const layout& view) {
  std::set<index_t> seen;
  for (const index_t position : positions_of(view))
    if (!seen.insert(position).second) return true;
  return false;
}

bool share_a_byte(const layout& a, index_t a_bytes, const layout& b, index_t b_bytes) {
  std::set<index_t> bytes;
  for (const index_t position : positions_of(a))
    for (index_t i = 0; i < a_bytes; ++i) bytes.insert(position * a_bytes + i);
  for (const index_t position : positions_of(b))
    for (index_t i = 0; i < b_bytes; ++i)
      if (bytes.count(position * b_bytes + i) != 0) return true;
  return false;
}

// Strides without any order, unlike those of views.
layout wild_layout(random_choices& choose, index_t axes_max, index_t longest, index_t stride) {
  dims shape, strides;
  for (index_t axis = choose(0, axes_max); axis > 0; --axis) {
    shape.push_back(choose(0, 19) == 0 ? 0 : choose(1, longest));
    strides.push_back(choose(-stride, stride));
  }
  return layout(shape, strides, choose(-20, 20));
}

std::string text(const layout& view) {
  return to_string(view.shape()) + " strides " + to_string(view.strides()) + " offset " +
         std::to_string(view.offset()) + "; ";
}

// The same question after every position is multiplied by a factor.
layout spread(const layout& view, index_t factor) {
  dims strides = view.strides();
  for (auto& stride : strides) stride *= factor;
  return layout(view.shape(), strides, view.offset() * factor);
}

TEST(SelfOverlap, AgreesWithCountingEveryElement) {
  random_choices choose(1);
  int answers[2] = {0, 0};
  for (int round = 0; round < 30000; ++round) {
    const layout view = round % 2 == 0
                            ? wild_layout(choose, 4, 5, 30)
                            : test::random_layout(choose, test::random_shape(choose)).geometry;
    const bool wanted = repeats(view);
    ASSERT_EQ(self_overlaps(view), wanted) << text(view);
    ASSERT_EQ(self_overlaps(spread(view, index_t{1} << 36)), wanted) << text(view);
    ++answers[wanted];
  }
  EXPECT_GT(answers[0], 3000);
  EXPECT_GT(answers[1], 3000);
}

TEST(SelfOverlap, NeverHoldsForLayoutsMadeDistinct) {
  random_choices choose(2);
  for (int round = 0; round < 5000; ++round) {
    const auto placed =
        test::random_layout(choose, test::random_shape(choose), test::sharing::distinct);
    ASSERT_FALSE(repeats(placed.geometry)) << text(placed.geometry);
    ASSERT_FALSE(self_overlaps(placed.geometry)) << text(placed.geometry);
  }
}

TEST(Overlap, AgreesWithCountingEveryByte) {
  random_choices choose(3);
  int answers[2] = {0, 0};
  for (int round = 0; round < 30000; ++round) {
    const index_t widths[] = {1, 2, 4, 8, 16};
    const index_t a_bytes = widths[choose(0, 4)];
    const index_t b_bytes = choose(0, 2) == 0 ? widths[choose(0, 4)] : a_bytes;
    const layout a = wild_layout(choose, 3, 4, 40), b = wild_layout(choose, 3, 4, 40);
    const bool wanted = share_a_byte(a, a_bytes, b, b_bytes);
    const auto ask = [](const layout& x, index_t x_bytes, const layout& y, index_t y_bytes) {
      return overlaps(x, static_cast<std::size_t>(x_bytes), y, static_cast<std::size_t>(y_bytes));
    };
    ASSERT_EQ(ask(a, a_bytes, b, b_bytes), wanted) << text(a) << a_bytes << text(b) << b_bytes;
    ASSERT_EQ(ask(b, b_bytes, a, a_bytes), wanted) << text(a) << a_bytes << text(b) << b_bytes;
    if (a_bytes == b_bytes) {
      ASSERT_EQ(ask(spread(a, index_t{1} << 36), a_bytes, spread(b, index_t{1} << 36), b_bytes),
                wanted)
          << text(a) << text(b);
    }
    ++answers[wanted];
  }
  EXPECT_GT(answers[0], 3000);
  EXPECT_GT(answers[1], 3000);
}

// The search has many levels, and its choices are several steps apart because weights have common
// divisors.
TEST(Overlap, AgreesWithCountingOverManyAxes) {
  random_choices choose(6);
  const auto deep = [&choose] {
    dims shape, strides;
    index_t factor = choose(1, 3);
    for (index_t axis = choose(4, 8); axis > 0; --axis) {
      shape.push_back(2 + (choose(0, 7) == 0));
      if (choose(0, 2) == 0) factor *= choose(1, 4);
      strides.push_back(factor * choose(-9, 30));
    }
    return layout(shape, strides, choose(-60, 60));
  };
  int shared[2] = {0, 0}, repeated[2] = {0, 0};
  for (int round = 0; round < 1500; ++round) {
    const index_t a_bytes = choose(1, 8), b_bytes = choose(0, 2) == 0 ? choose(1, 8) : a_bytes;
    const layout a = deep(), b = deep();
    const bool wanted = share_a_byte(a, a_bytes, b, b_bytes);
    ASSERT_EQ(overlaps(a, static_cast<std::size_t>(a_bytes), b, static_cast<std::size_t>(b_bytes)),
              wanted)
        << text(a) << a_bytes << text(b) << b_bytes;
    ++shared[wanted];
    const bool twice = repeats(a);
    ASSERT_EQ(self_overlaps(a), twice) << text(a);
    ++repeated[twice];
  }
  for (const int count : {shared[0], shared[1], repeated[0], repeated[1]}) EXPECT_GT(count, 100);
}

// There are few elements, but the strides are up to the largest possible, and near multiples of one
// another.
TEST(Overlap, AgreesWithCountingAtTheEndsOf64Bits) {
  __extension__ typedef __int128 wide;
  random_choices choose(4);
  const auto extreme = [&choose] {
    dims shape, strides;
    const index_t unit = (index_t{1} << 61) / choose(1, 12);
    for (index_t axis = choose(1, 3); axis > 0; --axis) {
      shape.push_back(choose(1, 3));
      strides.push_back(unit / choose(1, 6) * choose(-1, 1) + choose(-3, 3));
    }
    return layout(shape, strides, choose(-9, 9));
  };
  int answers[2] = {0, 0};
  for (int round = 0; round < 20000; ++round) {
    std::optional<layout> a, b;
    while (!a || !b) {
      try {
        a = extreme();
        b = extreme();
      } catch (const error&) {  // positions too far apart: draw again
      }
    }
    const index_t a_bytes = index_t{1} << choose(0, 4), b_bytes = index_t{1} << choose(0, 4);
    bool wanted = false;
    for (const wide p : positions_of(*a))
      for (const wide q : positions_of(*b))
        wanted = wanted || (p * a_bytes < (q + 1) * b_bytes && q * b_bytes < (p + 1) * a_bytes);
    ASSERT_EQ(
        overlaps(*a, static_cast<std::size_t>(a_bytes), *b, static_cast<std::size_t>(b_bytes)),
        wanted)
        << text(*a) << a_bytes << text(*b) << b_bytes;
    ASSERT_EQ(self_overlaps(*a), repeats(*a)) << text(*a);
    ++answers[wanted];
  }
  EXPECT_GT(answers[0], 2000);
  EXPECT_GT(answers[1], 2000);
}

TEST(Overlap, IsExactForLargeSlicesThatInterleave) {
  const index_t n = 1'000'000'000;
  const layout even({n}, {2}, 0), odd({n}, {2}, 1);
  EXPECT_FALSE(overlaps(even, 4, odd, 4));
  EXPECT_TRUE(overlaps(even, 4, layout({n}, {-2}, 2 * n), 4));
  // Left and right columns of one matrix do not overlap; with a common column they do.
  const layout left({n, 500}, {1000, 1}, 0), right({n, 500}, {1000, 1}, 500);
  EXPECT_FALSE(overlaps(left, 8, right, 8));
  EXPECT_TRUE(overlaps(left, 8, layout({n, 501}, {1000, 1}, 499), 8));
  // The same in bytes, as for two dtypes in one storage.
  EXPECT_FALSE(overlaps(left, 8, layout({n, 1000}, {2000, 1}, 1000), 4));
  EXPECT_TRUE(overlaps(left, 8, layout({n, 1000}, {2000, 1}, 999), 4));
  EXPECT_FALSE(overlaps(layout({n, 500, 8}, {8000, 8, 1}, 0), 1,
                        layout({n, 500, 8}, {8000, 8, 1}, 4000), 1));
}

TEST(Overlap, NeverHoldsForEmptyLayouts) {
  EXPECT_FALSE(overlaps(layout({0, 3}), 4, layout({3}), 4));
  EXPECT_FALSE(overlaps(layout({3}), 0, layout({3}), 4));
  EXPECT_FALSE(self_overlaps(layout({0, 3}, {0, 0}, 0)));
  EXPECT_TRUE(overlaps(layout(), 1, layout(), 1));
}

TEST(Overlap, ErrsToOverlapsBeyondTheWorkCap) {
  // A hard knapsack problem: weights near 2^40 without structure, whose subset sums do not meet.
  random_choices choose(5);
  dims shape, strides;
  for (int axis = 0; axis < 30; ++axis) {
    shape.push_back(2);
    strides.push_back((index_t{1} << 50) + choose(0, index_t{1} << 50));
  }
  EXPECT_TRUE(overlaps(layout(shape, strides, 0), 1, layout({1}, {1}, index_t{25} << 50), 1));
}

}  // namespace
}  // namespace shale
