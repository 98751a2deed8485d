#include "shale/index.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace {

// Every pair of 8-bit values, computed in int.
template <class Integer>
void check_all_pairs() {
  using limits = std::numeric_limits<Integer>;
  const auto fitting = [](int exact) -> std::optional<Integer> {
    if (exact < limits::min() || exact > limits::max()) return std::nullopt;
    return static_cast<Integer>(exact);
  };
  for (int a = limits::min(); a <= limits::max(); ++a) {
    for (int b = limits::min(); b <= limits::max(); ++b) {
      const auto x = static_cast<Integer>(a), y = static_cast<Integer>(b);
      ASSERT_EQ(shale::checked_add(x, y), fitting(a + b)) << a << ' ' << b;
      ASSERT_EQ(shale::checked_sub(x, y), fitting(a - b)) << a << ' ' << b;
      ASSERT_EQ(shale::checked_mul(x, y), fitting(a * b)) << a << ' ' << b;
      if (a < 0 || b <= 0) continue;
      int aligned = 0;
      while (aligned < a) aligned += b;
      ASSERT_EQ(shale::checked_align_up(x, y), fitting(aligned)) << a << ' ' << b;
      ASSERT_EQ(shale::ceil_div(x, y), aligned / b) << a << ' ' << b;
    }
  }
}

TEST(CheckedArithmetic, IsExactOrAbsentForEverySignedPair) { check_all_pairs<std::int8_t>(); }

TEST(CheckedArithmetic, IsExactOrAbsentForEveryUnsignedPair) { check_all_pairs<std::uint8_t>(); }

TEST(CheckedArithmetic, ReportsOverflowAtTheEndsOf64Bits) {
  constexpr shale::index_t top = std::numeric_limits<shale::index_t>::max();
  EXPECT_EQ(shale::checked_add(top, shale::index_t{0}), top);
  EXPECT_EQ(shale::checked_add(top, shale::index_t{1}), std::nullopt);
  EXPECT_EQ(shale::checked_sub(-top, shale::index_t{1}), -top - 1);
  EXPECT_EQ(shale::checked_sub(-top, shale::index_t{2}), std::nullopt);
  EXPECT_EQ(shale::checked_mul(top / 3, shale::index_t{3}), top / 3 * 3);
  EXPECT_EQ(shale::checked_mul(top / 3 + 1, shale::index_t{3}), std::nullopt);
  EXPECT_EQ(shale::checked_align_up(top, shale::index_t{4096}), std::nullopt);
  EXPECT_EQ(shale::ceil_div(top, shale::index_t{2}), top / 2 + 1);
}

}  // namespace
