// The integer type of sizes, strides and indices, and arithmetic that reports overflow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

namespace [[gnu::visibility("default")]] shale {

/// Counts elements and axes, and measures strides. It is signed, so that differences and negative
/// strides need no casts.
using index_t = std::int64_t;

/// The largest rank of a tensor.
inline constexpr index_t rank_max = 32;

/// a + b, or nothing if the sum does not fit.
template <class Integer>
constexpr std::optional<Integer> checked_add(Integer a, Integer b) noexcept {
  Integer sum{};
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

/// a - b, or nothing if the difference does not fit.
template <class Integer>
constexpr std::optional<Integer> checked_sub(Integer a, Integer b) noexcept {
  Integer difference{};
  if (__builtin_sub_overflow(a, b, &difference)) return std::nullopt;
  return difference;
}

/// a * b, or nothing if the product does not fit.
template <class Integer>
constexpr std::optional<Integer> checked_mul(Integer a, Integer b) noexcept {
  Integer product{};
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

/// `value` rounded up to a multiple of `alignment` (> 0), or nothing if that does not fit.
template <class Integer>
constexpr std::optional<Integer> checked_align_up(Integer value, Integer alignment) noexcept {
  const Integer rest = value % alignment;
  return rest == 0 ? std::optional(value)
                   : checked_add(value, static_cast<Integer>(alignment - rest));
}

/// The number of pieces of `size` (> 0) that cover `count` (>= 0): the quotient rounded up.
template <class Integer>
constexpr Integer ceil_div(Integer count, Integer size) noexcept {
  return count / size + (count % size != 0 ? 1 : 0);
}

}  // namespace shale
