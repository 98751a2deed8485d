// Converts an element to another type. Casts, copies and scalars all use these rules.
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

// Rounds `value` towards zero to a float32, and sets its last bit unless the result is exact.
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
    // Beyond 2^53, one bit that a double still holds replaces the low bits.
    auto magnitude = value < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(value)
                               : static_cast<std::uint64_t>(value);
    if (magnitude >> 53 != 0)
      magnitude = (magnitude & ~0x7ffull) | ((magnitude & 0x7ffull) ? 0x800 : 0);
    const auto wide = static_cast<double>(magnitude);
    return round_to_odd(value < 0 ? -wide : wide);
  }
}

}  // namespace detail

/// Converts one element by these rules:
/// to bool              anything but zero is true, NaN included
/// float -> integer     truncates towards zero, saturates at the ends of the range, NaN -> 0
/// integer -> integer   wraps modulo 2^n
/// to float             rounds to nearest, ties to even; float8_e4m3fn gets NaN for infinity
/// complex -> real      drops the imaginary part
/// real -> complex      converts the real part; the imaginary part is 0
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
    // Goes through a float32 that is rounded to odd: a tie of the narrower format never has the
    // last bit set, so the second rounding gives the result of a single rounding.
    if constexpr (std::is_same_v<From, double> || (std::is_integral_v<From> && sizeof(From) >= 4))
      return To(detail::round_to_odd(value));
    else return To(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // The limits as From values. `beyond` is a power of two, so it is exact: the largest value + 1.
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
