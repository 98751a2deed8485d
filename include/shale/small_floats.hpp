// The floating-point types that C++20 does not have: float16 and bfloat16, which compute in
// float32, and two float8 types, which can only be stored and converted. Conversions to these types
// round to nearest, ties to even.
#pragma once

#include <bit>
#include <cstdint>

namespace [[gnu::visibility("default")]] shale {

namespace detail {

// Rounds a float32 to a format of `exponent_bits` and `mantissa_bits`, ties to even.
// `finite`: the format has no infinity, and its only NaN pattern is all ones (the "fn" formats).
// Values beyond the largest finite one become NaN in such a format, as in the OCP 8-bit
// specification's conversion without saturation. In other formats they become infinity.
template <int exponent_bits, int mantissa_bits, bool finite>
constexpr std::uint32_t round_float(float value) noexcept {
  constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  constexpr std::uint32_t exponent_ones = (1u << exponent_bits) - 1;
  constexpr std::uint32_t nan_bits =
      finite ? (1u << (exponent_bits + mantissa_bits)) - 1
             : (exponent_ones << mantissa_bits) | (1u << (mantissa_bits - 1));
  constexpr std::uint32_t overflow_bits = finite ? nan_bits : exponent_ones << mantissa_bits;
  constexpr std::uint32_t largest = finite ? nan_bits - 1 : overflow_bits - 1;

  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 31) << (exponent_bits + mantissa_bits);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    // A NaN keeps the part of its payload that fits. The quiet bit in `nan_bits` keeps it a NaN.
    constexpr std::uint32_t payload_ones = (1u << mantissa_bits) - 1;
    return sign | nan_bits | ((magnitude >> (23 - mantissa_bits)) & payload_ones);
  }
  if (magnitude == 0x7f800000u) return sign | overflow_bits;

  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  std::uint64_t significand = (magnitude & 0x7fffffu) | (magnitude >> 23 != 0 ? 0x800000u : 0u);
  // The number of bits below the target's last mantissa bit. Subnormal results drop more.
  int dropped = 23 - mantissa_bits;
  int target_exponent = exponent + bias;
  if (target_exponent < 1) {
    dropped += 1 - target_exponent;
    target_exponent = 0;
  }
  if (dropped > 25) return sign;  // below half of the smallest subnormal
  const std::uint64_t half = std::uint64_t{1} << (dropped - 1);
  const std::uint64_t rest = significand & ((half << 1) - 1);
  significand >>= dropped;
  if (rest > half || (rest == half && (significand & 1))) ++significand;
  // A carry out of the mantissa moves into the exponent by plain addition.
  const std::uint32_t rounded =
      target_exponent == 0 ? static_cast<std::uint32_t>(significand)
                           : (static_cast<std::uint32_t>(target_exponent - 1) << mantissa_bits) +
                                 static_cast<std::uint32_t>(significand);
  return sign | (rounded > largest ? overflow_bits : rounded);
}

template <int exponent_bits, int mantissa_bits, bool finite>
constexpr float widen_float(std::uint32_t bits) noexcept {
  constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  constexpr std::uint32_t exponent_ones = (1u << exponent_bits) - 1;
  const std::uint32_t sign = (bits >> (exponent_bits + mantissa_bits)) << 31;
  const std::uint32_t magnitude = bits & ((1u << (exponent_bits + mantissa_bits)) - 1);
  std::uint32_t exponent = magnitude >> mantissa_bits;
  std::uint32_t mantissa = magnitude & ((1u << mantissa_bits) - 1);
  if (finite ? magnitude == (1u << (exponent_bits + mantissa_bits)) - 1
             : exponent == exponent_ones) {
    const std::uint32_t payload = finite ? 0x400000u : mantissa << (23 - mantissa_bits);
    return std::bit_cast<float>(sign | 0x7f800000u | payload);
  }
  if (exponent == 0) {
    if (mantissa == 0) return std::bit_cast<float>(sign);
    const int shift = std::countl_zero(mantissa) - (31 - mantissa_bits);
    mantissa = (mantissa << shift) & ((1u << mantissa_bits) - 1);
    exponent = static_cast<std::uint32_t>(1 - shift + 127 - bias);
    return std::bit_cast<float>(sign | (exponent << 23) | (mantissa << (23 - mantissa_bits)));
  }
  exponent += static_cast<std::uint32_t>(127 - bias);
  return std::bit_cast<float>(sign | (exponent << 23) | (mantissa << (23 - mantissa_bits)));
}

}  // namespace detail

/// IEEE 754 binary16: 5 exponent bits, 10 mantissa bits, largest finite value 65504.
struct float16 {
  std::uint16_t bits = 0;

  constexpr float16() noexcept = default;

  /// Rounds to nearest, ties to even. A NaN stays a NaN.
  constexpr explicit float16(float value) noexcept
      : bits(static_cast<std::uint16_t>(detail::round_float<5, 10, false>(value))) {}

  /// The conversion is exact.
  constexpr operator float() const noexcept { return detail::widen_float<5, 10, false>(bits); }

  /// The value with these bits. Every pattern is valid: a number, a NaN or an infinity.
  static constexpr float16 from_bits(std::uint16_t bits) noexcept {
    float16 result;
    result.bits = bits;
    return result;
  }
};

/// The upper half of a float32: 8 exponent bits, 7 mantissa bits.
struct bfloat16 {
  std::uint16_t bits = 0;

  constexpr bfloat16() noexcept = default;

  /// Rounds to nearest, ties to even. A NaN stays a NaN.
  constexpr explicit bfloat16(float value) noexcept {
    const auto wide = std::bit_cast<std::uint32_t>(value);
    // A NaN keeps its sign and upper payload and stays a NaN; rounding could carry it to infinity.
    if ((wide & 0x7fffffffu) > 0x7f800000u) bits = static_cast<std::uint16_t>((wide >> 16) | 0x40u);
    else bits = static_cast<std::uint16_t>((wide + 0x7fffu + ((wide >> 16) & 1u)) >> 16);
  }

  /// The conversion is exact.
  constexpr operator float() const noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }

  /// The value with these bits. Every pattern is valid: a number, a NaN or an infinity.
  static constexpr bfloat16 from_bits(std::uint16_t bits) noexcept {
    bfloat16 result;
    result.bits = bits;
    return result;
  }
};

/// 4 exponent bits, 3 mantissa bits, no infinity, one NaN (S.1111.111), largest finite value 448.
/// Values that are too large become NaN.
/// Source   OCP 8-bit Floating Point Specification (OFP8), 2023
struct float8_e4m3fn {
  std::uint8_t bits = 0;

  constexpr float8_e4m3fn() noexcept = default;

  /// Rounds to nearest, ties to even. A NaN stays a NaN.
  constexpr explicit float8_e4m3fn(float value) noexcept
      : bits(static_cast<std::uint8_t>(detail::round_float<4, 3, true>(value))) {}

  /// The conversion is exact.
  constexpr operator float() const noexcept { return detail::widen_float<4, 3, true>(bits); }

  /// The value with these bits. Every pattern is valid: a number or a NaN. There is no
  /// infinity.
  static constexpr float8_e4m3fn from_bits(std::uint8_t bits) noexcept {
    float8_e4m3fn result;
    result.bits = bits;
    return result;
  }
};

/// 5 exponent bits, 2 mantissa bits, IEEE-like infinities and NaNs, largest finite value 57344.
/// Source   OCP 8-bit Floating Point Specification (OFP8), 2023
struct float8_e5m2 {
  std::uint8_t bits = 0;

  constexpr float8_e5m2() noexcept = default;

  /// Rounds to nearest, ties to even. A NaN stays a NaN.
  constexpr explicit float8_e5m2(float value) noexcept
      : bits(static_cast<std::uint8_t>(detail::round_float<5, 2, false>(value))) {}

  /// The conversion is exact.
  constexpr operator float() const noexcept { return detail::widen_float<5, 2, false>(bits); }

  /// The value with these bits. Every pattern is valid: a number, a NaN or an infinity.
  static constexpr float8_e5m2 from_bits(std::uint8_t bits) noexcept {
    float8_e5m2 result;
    result.bits = bits;
    return result;
  }
};

}  // namespace shale
