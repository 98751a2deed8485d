// How one element becomes another: the conversion rules of every cast, copy and scalar.
#pragma once

#include <bit>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "shale/small_floats.hpp"

namespace [[gnu::visibility("default")]] shale {

namespace detail {
template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;
template <class T>
inline constexpr bool is_small_float =
    std::is_same_v<T, float16> || std::is_same_v<T, bfloat16> || std::is_same_v<T, float8_e4m3fn> ||
    std::is_same_v<T, float8_e5m2>;

// The float32 next to `value` towards zero, with its last bit set unless it is exact.
constexpr float round_to_odd(double value) noexcept {
  auto narrow = static_cast<float>(value);
  if (static_cast<double>(narrow) == value || value != value) return narrow;
  auto bits = std::bit_cast<std::uint32_t>(narrow);
  const double magnitude = value < 0 ? -value : value;
  const double rounded = narrow < 0 ? -static_cast<double>(narrow) : static_cast<double>(narrow);
  if (rounded > magnitude) --bits;
  return std::bit_cast<float>(bits | 1u);
}

template <class Integer>
requires std::is_integral_v<Integer>
constexpr float round_to_odd(Integer value) noexcept {
  if constexpr (sizeof(Integer) < 8) {
    return round_to_odd(static_cast<double>(value));
  } else {
    // Beyond 2^53 the low bits are folded into one that a double still holds.
    auto magnitude = value < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(value)
                               : static_cast<std::uint64_t>(value);
    if (magnitude >> 53 != 0)
      magnitude = (magnitude & ~0x7ffull) | ((magnitude & 0x7ffull) ? 0x800 : 0);
    const auto wide = static_cast<double>(magnitude);
    return round_to_odd(value < 0 ? -wide : wide);
  }
}

}  // namespace detail

/// Converts one element:
/// to bool              anything but zero is true (NaN too)
/// float -> integer     truncates towards zero, saturates at the ends, NaN -> 0
/// integer -> integer   wraps modulo 2^n
/// to float             rounds to nearest, ties to even; float8_e4m3fn has no infinity: NaN instead
/// complex -> real      drops the imaginary part
template <class To, class From>
constexpr To convert(From value) noexcept {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (detail::is_complex<From>) {
    if constexpr (detail::is_complex<To>)
      return To(static_cast<typename To::value_type>(value.real()),
                static_cast<typename To::value_type>(value.imag()));
    else if constexpr (std::is_same_v<To, bool>) return value.real() != 0 || value.imag() != 0;
    else return convert<To>(value.real());
  } else if constexpr (detail::is_small_float<From>) {
    return convert<To>(static_cast<float>(value));
  } else if constexpr (detail::is_complex<To>) {
    return To(convert<typename To::value_type>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else if constexpr (detail::is_small_float<To>) {
    // Through float32, rounded to odd where it is inexact: no tie of the narrower format has its
    // last bit set, so the second rounding decides as if there had been only one.
    if constexpr (std::is_same_v<From, double> || (std::is_integral_v<From> && sizeof(From) >= 4))
      return To(detail::round_to_odd(value));
    else return To(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // The limits as From values: the upper one, a power of two, is exact and one too large.
    constexpr From lowest = static_cast<From>(std::numeric_limits<To>::min());
    constexpr From beyond = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * 2;
    if (value >= beyond) return std::numeric_limits<To>::max();
    if (value <= lowest) return std::numeric_limits<To>::min();
    return value == value ? static_cast<To>(value) : To{0};
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace shale
