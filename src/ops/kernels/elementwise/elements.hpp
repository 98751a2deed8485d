// Defines the element types of kernels, and their conversions in forms that compilers vectorise:
// without branches, as selections between values that are all computed.
//
// Units built for different instruction sets include this file. So everything is in an anonymous
// namespace (isa.1 in dispatch/table.hpp), and neither shale's inline functions nor the standard
// library's are used. The rules of conversion are those of shale/convert.hpp; tests compare the two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "shale/dtype.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

/// The size of a vector of the instruction set that this unit is built for.
#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif

struct boolean {
  std::uint8_t byte;
};
struct half {
  std::uint16_t bits;
};
struct brain {
  std::uint16_t bits;
};
struct e4m3fn {
  std::uint8_t bits;
};
struct e5m2 {
  std::uint8_t bits;
};
template <class Part>
struct complex_of {
  Part real;
  Part imaginary;
};

template <class T>
inline constexpr bool is_complex = false;
template <class Part>
inline constexpr bool is_complex<complex_of<Part>> = true;
template <class T>
inline constexpr bool is_small = std::is_same_v<T, half> || std::is_same_v<T, brain> ||
                                 std::is_same_v<T, e4m3fn> || std::is_same_v<T, e5m2>;
template <class T>
inline constexpr bool is_boolean = std::is_same_v<T, boolean>;
template <class T>
inline constexpr bool is_float = std::is_floating_point_v<T>;
template <class T>
inline constexpr bool is_integer = std::is_integral_v<T>;

template <class T>
inline constexpr dtype type_of = dtype_of<T>();
template <>
inline constexpr dtype type_of<boolean> = dtype::boolean;
template <>
inline constexpr dtype type_of<half> = dtype::float16;
template <>
inline constexpr dtype type_of<brain> = dtype::bfloat16;
template <>
inline constexpr dtype type_of<e4m3fn> = dtype::float8_e4m3fn;
template <>
inline constexpr dtype type_of<e5m2> = dtype::float8_e5m2;
template <>
inline constexpr dtype type_of<complex_of<float>> = dtype::complex64;
template <>
inline constexpr dtype type_of<complex_of<double>> = dtype::complex128;

/// Calls `function` once for every type, with a value of the type.
template <class... Types, class Function>
void for_types(type_list<Types...>, Function function) {
  (function(Types{}), ...);
}

using integers = type_list<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                           std::uint16_t, std::uint32_t, std::uint64_t>;
using wide_floats = type_list<float, double>;
using complexes = type_list<complex_of<float>, complex_of<double>>;

/// An unsigned type to compute in that neither overflows nor is promoted to a signed one.
template <class T>
using word = std::conditional_t<(sizeof(T) < 4), std::uint32_t, std::make_unsigned_t<T>>;

template <class T>
inline constexpr bool is_signed = std::is_signed_v<T>;
template <class T>
inline constexpr T highest =
    is_signed<T>
        ? static_cast<T>(static_cast<std::make_unsigned_t<T>>(~std::make_unsigned_t<T>{}) >> 1)
        : static_cast<T>(~std::make_unsigned_t<T>{});
template <class T>
inline constexpr T lowest = static_cast<T>(highest<T> + std::make_unsigned_t<T>{1});

template <class To, class From>
inline To as_bits(From value) {
  return __builtin_bit_cast(To, value);
}

/// -x. It is written with bits, because GCC 12 joins a - b and a + b of neighbouring parts to a
/// fused multiply-add-subtract instruction, in spite of -ffp-contract=off.
inline float flipped(float value) {
  return as_bits<float>(as_bits<std::uint32_t>(value) ^ 0x80000000u);
}
inline double flipped(double value) {
  return as_bits<double>(as_bits<std::uint64_t>(value) ^ 0x8000000000000000u);
}

// ---- small floats ------------------------------------------------------------------------------

/// Converts a float of `exponent_bits` and `mantissa_bits` to float32, exactly. The exponent and
/// mantissa bits are moved to their places in a float32, and the bias of the exponent is corrected.
/// No operation has a subnormal operand, which could be flushed to zero. If `finite`, the type has
/// no infinities, and its only NaN has all bits set.
template <int exponent_bits, int mantissa_bits, bool finite>
inline float widen(std::uint32_t bits) {
  constexpr int shift = 23 - mantissa_bits;
  constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  constexpr std::uint32_t rebias = static_cast<std::uint32_t>(127 - bias) << 23;
  constexpr std::uint32_t magnitude_mask = (1u << (exponent_bits + mantissa_bits)) - 1;
  constexpr std::uint32_t exponent_mask = ((1u << exponent_bits) - 1) << 23;
  const std::uint32_t sign = (bits >> (exponent_bits + mantissa_bits)) << 31;
  const std::uint32_t moved = (bits & magnitude_mask) << shift;
  const std::uint32_t exponent = moved & exponent_mask;
  // For a subnormal number, the mantissa is placed in the smallest normal number; subtracting that
  // number leaves the value.
  constexpr std::uint32_t smallest = rebias + (1u << 23);
  const auto subnormal =
      as_bits<std::uint32_t>(as_bits<float>(moved + smallest) - as_bits<float>(smallest));
  std::uint32_t wide = exponent == 0 ? subnormal : moved + rebias;
  if constexpr (finite) wide = (bits & magnitude_mask) == magnitude_mask ? 0x7fc00000u : wide;
  else wide = exponent == exponent_mask ? (moved & 0x7fffffu) | 0x7f800000u : wide;
  return as_bits<float>(sign | wide);
}

/// Rounds a float32 to such a float, ties to even. A normal result is rounded in integers: adding
/// half of the last kept bit carries into it. A subnormal result is rounded by a float addition,
/// see below.
template <int exponent_bits, int mantissa_bits, bool finite>
inline std::uint32_t narrow(float value) {
  constexpr int shift = 23 - mantissa_bits;
  constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  constexpr std::uint32_t rebias = static_cast<std::uint32_t>(127 - bias) << 23;
  constexpr std::uint32_t exponent_ones = ((1u << exponent_bits) - 1) << mantissa_bits;
  constexpr std::uint32_t nan = finite ? (1u << (exponent_bits + mantissa_bits)) - 1
                                       : exponent_ones | (1u << (mantissa_bits - 1));
  constexpr std::uint32_t overflow = finite ? nan : exponent_ones;
  // A power of two whose last mantissa bit has the value of the target's smallest subnormal number.
  // The sum with it is rounded to a multiple of that number.
  constexpr auto rounder_bits = static_cast<std::uint32_t>(127 + 24 - bias - mantissa_bits) << 23;

  const auto bits = as_bits<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const std::uint32_t sign = (bits >> 31) << (exponent_bits + mantissa_bits);
  const std::uint32_t even = (magnitude >> shift) & 1u;
  const std::uint32_t normal = (magnitude + ((1u << (shift - 1)) - 1) + even - rebias) >> shift;
  const std::uint32_t subnormal =
      as_bits<std::uint32_t>(as_bits<float>(magnitude) + as_bits<float>(rounder_bits)) -
      rounder_bits;
  std::uint32_t rounded = magnitude < rebias + (1u << 23) ? subnormal : normal;
  rounded = rounded > overflow ? overflow : rounded;
  // A NaN keeps the upper bits of its payload. The quiet bit is set, so that it stays a NaN.
  const std::uint32_t payload = (magnitude >> shift) & ((1u << mantissa_bits) - 1);
  rounded = magnitude > 0x7f800000u ? nan | payload : rounded;
  return sign | rounded;
}

inline float widen(half value) { return widen<5, 10, false>(value.bits); }
inline float widen(e4m3fn value) { return widen<4, 3, true>(value.bits); }
inline float widen(e5m2 value) { return widen<5, 2, false>(value.bits); }
inline float widen(brain value) {
  return as_bits<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

template <class To>
inline To narrow_to(float value) {
  if constexpr (std::is_same_v<To, half>) {
    return {static_cast<std::uint16_t>(narrow<5, 10, false>(value))};
  } else if constexpr (std::is_same_v<To, e4m3fn>) {
    return {static_cast<std::uint8_t>(narrow<4, 3, true>(value))};
  } else if constexpr (std::is_same_v<To, e5m2>) {
    return {static_cast<std::uint8_t>(narrow<5, 2, false>(value))};
  } else {
    const auto bits = as_bits<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const std::uint32_t nan = (bits >> 16) | 0x40u;
    return {static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded)};
  }
}

/// Rounds to odd: the float32 next to `value` towards zero, with its last bit set unless it is
/// exact. Rounding this result again, to at least two bits fewer, gives the same as rounding
/// `value` once, because a result that looks like a tie is an exact tie.
/// Source   S. Boldo, G. Melquiond, Emulation of FMA and correctly rounded sums: proved algorithms
///          using rounding to odd, IEEE Transactions on Computers 57 (2008)
inline float to_odd(double value) {
  const auto near = static_cast<float>(value);
  const auto back = static_cast<double>(near);
  auto bits = as_bits<std::uint32_t>(near);
  const double magnitude = value < 0 ? -value : value;
  const double rounded = back < 0 ? -back : back;
  const std::uint32_t away = rounded > magnitude ? 1u : 0u;
  const std::uint32_t odd = (bits - away) | 1u;
  bits = ((back < value) | (back > value)) ? odd : bits;
  return as_bits<float>(bits);
}

/// Rounds an integer to odd as a double. A later rounding then gives the same as a single one.
template <class From>
inline double to_odd_double(From value) {
  if constexpr (sizeof(From) < 8) {
    return static_cast<double>(value);
  } else {
    const bool negative = value < 0;
    auto magnitude = negative ? std::uint64_t{0} - static_cast<std::uint64_t>(value)
                              : static_cast<std::uint64_t>(value);
    const std::uint64_t folded =
        (magnitude & ~std::uint64_t{0x7ff}) | ((magnitude & 0x7ff) != 0 ? 0x800u : 0u);
    magnitude = (magnitude >> 53) != 0 ? folded : magnitude;
    const auto wide = static_cast<double>(magnitude);
    return negative ? -wide : wide;
  }
}

// ---- conversion --------------------------------------------------------------------------------

template <class From>
inline bool is_nonzero(From value) {
  if constexpr (is_boolean<From>) return value.byte != 0;
  else if constexpr (is_complex<From>) return (value.real != 0) | (value.imaginary != 0);
  else if constexpr (std::is_same_v<From, e4m3fn> || std::is_same_v<From, e5m2>)
    return (value.bits & 0x7f) != 0;
  else if constexpr (is_small<From>) return (value.bits & 0x7fff) != 0;
  else return value != 0;
}

/// The number that a value stands for: 0 or 1 for a bool, even if its byte is larger; else the
/// value.
template <class T>
inline auto number(T value) {
  // Compilers compute a minimum in vectors of bytes; they would widen a comparison first.
  if constexpr (is_boolean<T>) return value.byte < 1 ? value.byte : std::uint8_t{1};
  else return value;
}

/// Converts a float to an integer: truncates, saturates, and gives 0 for NaN.
template <class To, class From>
inline To saturate(From value) {
  constexpr auto low = static_cast<From>(lowest<To>);
  constexpr From beyond = static_cast<From>(highest<To> / 2 + 1) * 2;
  // Values out of range are replaced before the conversion, which would be undefined for them. So
  // the compiler may evaluate both sides of each selection.
  From inside = value >= beyond ? From{0} : value;
  inside = inside > low ? inside : (inside <= low ? low : From{0});
  To whole;
  if constexpr (sizeof(To) < 4) {
    whole = static_cast<To>(static_cast<std::int32_t>(inside));
  } else if constexpr (std::is_same_v<To, std::uint32_t>) {
    // This converts through int32, because every instruction set has that conversion.
    constexpr From middle = 2147483648.0;
    const bool upper = inside >= middle;
    const auto part = static_cast<std::int32_t>(upper ? inside - middle : inside);
    whole = static_cast<std::uint32_t>(part) + (upper ? 0x80000000u : 0u);
  } else {
    whole = static_cast<To>(inside);
  }
  return value >= beyond ? highest<To> : whole;
}

/// Converts by the rules of `shale::convert`.
template <class To, class From>
inline To to(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (is_boolean<To>) {
    return {static_cast<std::uint8_t>(is_nonzero(value))};
  } else if constexpr (is_boolean<From>) {
    return to<To>(number(value));
  } else if constexpr (is_complex<From>) {
    if constexpr (is_complex<To>)
      return {static_cast<decltype(To::real)>(value.real),
              static_cast<decltype(To::real)>(value.imaginary)};
    else return to<To>(value.real);
  } else if constexpr (is_complex<To>) {
    return {to<decltype(To::real)>(value), 0};
  } else if constexpr (is_small<From>) {
    return to<To>(widen(value));
  } else if constexpr (is_small<To>) {
    if constexpr (std::is_same_v<From, double>) return narrow_to<To>(to_odd(value));
    else if constexpr (is_integer<From> && sizeof(From) >= 4)
      return narrow_to<To>(to_odd(to_odd_double(value)));
    else return narrow_to<To>(static_cast<float>(value));
  } else if constexpr (is_float<From> && is_integer<To>) {
    return saturate<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace
}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
