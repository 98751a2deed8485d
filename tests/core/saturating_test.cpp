// Tests sums and products that end at the largest number. The oracle computes in 128 bits.
#include "core/saturating.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace shale {
namespace {

__extension__ using wide = unsigned __int128;

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

std::uint64_t limited(wide exact) {
  return exact > most ? most : static_cast<std::uint64_t>(exact);
}

TEST(Saturating, IsExactOrTheLargestNumber) {
  constexpr std::uint64_t one = 1;
  constexpr std::uint64_t numbers[] = {0,         1,         2,        3,         8,
                                       16,        most / 8,  most / 3, one << 32, (one << 32) - 1,
                                       one << 61, one << 63, most - 1, most};
  for (const std::uint64_t a : numbers) {
    for (const std::uint64_t b : numbers) {
      EXPECT_EQ(detail::saturating_add(a, b), limited(wide{a} + b)) << a << ' ' << b;
      EXPECT_EQ(detail::saturating_mul(a, b), limited(wide{a} * b)) << a << ' ' << b;
      std::uint64_t sum = a;
      detail::add_saturating(sum, b);
      EXPECT_EQ(sum, limited(wide{a} + b)) << a << ' ' << b;
    }
  }
}

}  // namespace
}  // namespace shale
