// Index arithmetic: the signed element type every size and stride is counted in, and arithmetic on
// it that reports overflow instead of wrapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

namespace [[gnu::visibility("default")]] shale {

/// Counts elements, axes and strides; signed, so that strides and differences need no casts.
using index_t = std::int64_t;

/// Most axes a tensor can have; shapes and strides are held inline up to this rank.
inline constexpr index_t max_rank = 32;

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

/// How many pieces of `size` (> 0) cover `count` (>= 0).
template <class Integer>
constexpr Integer ceil_div(Integer count, Integer size) noexcept {
  return count / size + (count % size != 0 ? 1 : 0);
}

}  // namespace shale
