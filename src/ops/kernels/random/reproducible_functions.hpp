// The elementary functions that turn words into numbers. They use only operations that IEEE 754 or
// C++ define to the last bit, in a fixed order, so all instruction sets give the same bits
// (random.1 in random.cpp).
//
// Each exists for float and double. They are series that converge quickly on the short range that
// is left after the exponent, or the quadrant, was taken out.
#pragma once

#include "ops/kernels/elementwise/elements.hpp"
#include "ops/kernels/random/philox.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

inline float root(float x) { return __builtin_sqrtf(x); }
inline double root(double x) { return __builtin_sqrt(x); }

/// The double of an integer below 2^53. The two halves are placed in the mantissas of 2^52 and
/// 2^84, because only AVX-512 converts integers of 64 bits.
inline double to_double(u64 whole) {
  const double low = as_bits<double>(0x4330000000000000u | (whole & 0xffffffffu));
  const double high = as_bits<double>(0x4530000000000000u | (whole >> 32));
  return (high - (0x1p84 + 0x1p52)) + low;
}

/// The double of an integer between -2^51 and 2^51, given modulo 2^64.
inline double to_double_signed(u64 whole) {
  return as_bits<double>(whole + 0x4338000000000000u) - 0x1.8p52;
}

/// log(1 + f) for 1 + f between sqrt(1/2) and sqrt(2), as twice the area tangent of f / (2 + f).
inline float log_near_1(float f) {
  const float s = f / (2.0f + f);
  const float z = s * s;
  float sum = 1.0f / 9;
  sum = sum * z + 1.0f / 7;
  sum = sum * z + 1.0f / 5;
  sum = sum * z + 1.0f / 3;
  const float twice = s + s;
  return twice + twice * (z * sum);
}
inline double log_near_1(double f) {
  const double s = f / (2.0 + f);
  const double z = s * s;
  double sum = 1.0 / 21;
  sum = sum * z + 1.0 / 19;
  sum = sum * z + 1.0 / 17;
  sum = sum * z + 1.0 / 15;
  sum = sum * z + 1.0 / 13;
  sum = sum * z + 1.0 / 11;
  sum = sum * z + 1.0 / 9;
  sum = sum * z + 1.0 / 7;
  sum = sum * z + 1.0 / 5;
  sum = sum * z + 1.0 / 3;
  const double twice = s + s;
  return twice + twice * (z * sum);
}

/// -log(u) for u = (k + 1/2) / 2^31, where k has the upper 31 bits of the word. It is positive.
inline float minus_log(u32 word) {
  const u32 whole = word | 1u;  // u * 2^32
  // Near 1 the distance from 1 is rounded, not the number, so that the result keeps its digits.
  const bool near_1 = whole >= 0xb504f334u;
  const float value = static_cast<float>(near_1 ? 0u - whole : whole);
  const u32 bits = as_bits<u32>(value);
  constexpr u32 root_of_half = 0x3f3504f3u;
  const u32 exponent = (bits - root_of_half) >> 23;
  const float mantissa = as_bits<float>(bits - (exponent << 23));
  const float f = near_1 ? value * -0x1p-32f : mantissa - 1.0f;
  const float twos = near_1 ? 0.0f : static_cast<float>(32 - static_cast<std::int32_t>(exponent));
  // ln 2 in two parts; the product with the first part is exact.
  return twos * 0x1.63p-1f + (twos * -0x1.bd0106p-13f - log_near_1(f));
}
/// -log(u) for u = (k + 1/2) / 2^52, where k has the upper 52 bits of the word.
inline double minus_log(u64 word) {
  const double value = to_double(word >> 11 | 1u) * 0x1p-53;
  const u64 bits = as_bits<u64>(value);
  constexpr u64 root_of_half = 0x3fe6a09e667f3bcdu;
  const u64 exponent = (bits - root_of_half + (u64{1023} << 52)) >> 52;  // biased, at most 1023
  const double mantissa = as_bits<double>(bits - (exponent << 52) + (u64{1023} << 52));
  const double twos = 1023.0 - to_double(exponent);
  return twos * 0x1.62e42fee00000p-1 + (twos * 0x1.a39ef35793c76p-33 - log_near_1(mantissa - 1.0));
}

template <class Float>
struct sine_and_cosine {
  Float sine;
  Float cosine;
};

/// Sine and cosine of 2 pi (w + 1/2) / 2^32.
inline sine_and_cosine<float> circle(u32 word) {
  const u32 quadrant = (word + 0x20000000u) >> 30;
  const auto offset = static_cast<std::int32_t>(2 * (word - (quadrant << 30)) + 1);
  const float y = static_cast<float>(offset) * 0x1.921fb6p-31f;  // pi / 2^32
  const float z = y * y;
  float odd = 1.0f / 362880;
  odd = odd * z - 1.0f / 5040;
  odd = odd * z + 1.0f / 120;
  odd = odd * z - 1.0f / 6;
  const float sine = y + y * (z * odd);
  float even = -1.0f / 3628800;
  even = even * z + 1.0f / 40320;
  even = even * z - 1.0f / 720;
  even = even * z + 1.0f / 24;
  even = even * z - 0.5f;
  const float cosine = 1.0f + z * even;
  const bool swap = (quadrant & 1) != 0;
  const u32 sine_bits = as_bits<u32>(swap ? cosine : sine) ^ (quadrant & 2) << 30;
  const u32 cosine_bits = as_bits<u32>(swap ? sine : cosine) ^ ((quadrant + 1) & 2) << 30;
  return {as_bits<float>(sine_bits), as_bits<float>(cosine_bits)};
}
/// Sine and cosine of 2 pi (k + 1/2) / 2^52, where k has the upper 52 bits of the word.
inline sine_and_cosine<double> circle(u64 word) {
  const u64 turn = word >> 12;
  const u64 quadrant = (turn + (u64{1} << 49)) >> 50;
  const double offset = to_double_signed(2 * (turn - (quadrant << 50)) + 1);
  const double y = offset * 0x1.921fb54442d18p-51;  // pi / 2^52
  const double z = y * y;
  double odd = 1.0 / 355687428096000;
  odd = odd * z - 1.0 / 1307674368000;
  odd = odd * z + 1.0 / 6227020800;
  odd = odd * z - 1.0 / 39916800;
  odd = odd * z + 1.0 / 362880;
  odd = odd * z - 1.0 / 5040;
  odd = odd * z + 1.0 / 120;
  odd = odd * z - 1.0 / 6;
  const double sine = y + y * (z * odd);
  double even = 1.0 / 20922789888000;
  even = even * z - 1.0 / 87178291200;
  even = even * z + 1.0 / 479001600;
  even = even * z - 1.0 / 3628800;
  even = even * z + 1.0 / 40320;
  even = even * z - 1.0 / 720;
  even = even * z + 1.0 / 24;
  even = even * z - 0.5;
  const double cosine = 1.0 + z * even;
  const bool swap = (quadrant & 1) != 0;
  const u64 sine_bits = as_bits<u64>(swap ? cosine : sine) ^ (quadrant & 2) << 62;
  const u64 cosine_bits = as_bits<u64>(swap ? sine : cosine) ^ ((quadrant + 1) & 2) << 62;
  return {as_bits<double>(sine_bits), as_bits<double>(cosine_bits)};
}

/// e^x; infinity or 0 beyond the range of the type. x = n ln 2 + r, with |r| <= ln 2 / 2.
inline float power_of_e(float x) {
  const float high = x > 90.0f ? 90.0f : x;
  const float inside = high < -110.0f ? -110.0f : high;
  const float shifted = inside * 0x1.715476p+0f + 0x1.8p23f;  // n is in the last bits
  const float n = shifted - 0x1.8p23f;
  const float r = (inside - n * 0x1.63p-1f) - n * -0x1.bd0106p-13f;
  float sum = 1.0f / 5040;
  sum = sum * r + 1.0f / 720;
  sum = sum * r + 1.0f / 120;
  sum = sum * r + 1.0f / 24;
  sum = sum * r + 1.0f / 6;
  sum = sum * r + 0.5f;
  sum = 1.0f + (r + r * r * sum);
  // 2^n may lie outside the range although the result is inside, so two factors make it.
  const u32 biased = as_bits<u32>(shifted) - 0x4b400000u + 254u;
  const u32 half = biased >> 1;
  return sum * as_bits<float>(half << 23) * as_bits<float>((biased - half) << 23);
}
inline double power_of_e(double x) {
  const double high = x > 720.0 ? 720.0 : x;
  const double inside = high < -760.0 ? -760.0 : high;
  const double shifted = inside * 0x1.71547652b82fep+0 + 0x1.8p52;
  const double n = shifted - 0x1.8p52;
  const double r = (inside - n * 0x1.62e42fee00000p-1) - n * 0x1.a39ef35793c76p-33;
  double sum = 1.0 / 6227020800;
  sum = sum * r + 1.0 / 479001600;
  sum = sum * r + 1.0 / 39916800;
  sum = sum * r + 1.0 / 3628800;
  sum = sum * r + 1.0 / 362880;
  sum = sum * r + 1.0 / 40320;
  sum = sum * r + 1.0 / 5040;
  sum = sum * r + 1.0 / 720;
  sum = sum * r + 1.0 / 120;
  sum = sum * r + 1.0 / 24;
  sum = sum * r + 1.0 / 6;
  sum = sum * r + 0.5;
  sum = 1.0 + (r + r * r * sum);
  const u64 biased = as_bits<u64>(shifted) - 0x4338000000000000u + 2046u;
  const u64 half = biased >> 1;
  return sum * as_bits<double>(half << 52) * as_bits<double>((biased - half) << 52);
}

}  // namespace
}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
