// Sums and products of byte counts that end at the largest number instead of wrapping. Lazy
// expressions and overlapping views may have more bytes than 64 bits can count.
#pragma once

#include <cstdint>
#include <limits>

#include "shale/index.hpp"

namespace shale::detail {

/// a + b, or the largest number if the sum does not fit.
constexpr std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) noexcept {
  return checked_add(a, b).value_or(std::numeric_limits<std::uint64_t>::max());
}

/// a * b, or the largest number if the product does not fit.
constexpr std::uint64_t saturating_mul(std::uint64_t a, std::uint64_t b) noexcept {
  return checked_mul(a, b).value_or(std::numeric_limits<std::uint64_t>::max());
}

/// Adds `more` to `sum`, which ends at the largest number.
constexpr void add_saturating(std::uint64_t& sum, std::uint64_t more) noexcept {
  sum = saturating_add(sum, more);
}

}  // namespace shale::detail
