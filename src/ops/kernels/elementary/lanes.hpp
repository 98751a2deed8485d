// Operations on the lanes of one vector, under the same names for AVX2 and AVX-512. They are IEEE
// operations, so a function that is written with them has the same bits on both.
#pragma once

#if defined(__AVX2__)
// GCC 12 warns of the values that intrinsics leave undefined on purpose.
#pragma GCC diagnostic push
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop

#include "ops/kernels/elementwise/elements.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

#if defined(__AVX512F__)
using float_vector = __m512;
using double_vector = __m512d;
using int_vector = __m512i;
using lane_mask = __mmask16;

inline float_vector all_lanes(float value) { return _mm512_set1_ps(value); }
inline int_vector all_lanes(int value) { return _mm512_set1_epi32(value); }
inline double_vector all_lanes(double value) { return _mm512_set1_pd(value); }
inline int_vector bits_of_lanes(float_vector a) { return _mm512_castps_si512(a); }
inline float_vector lanes_of_bits(int_vector a) { return _mm512_castsi512_ps(a); }

/// a * b + c, and c - a * b, rounded once.
inline float_vector fused(float_vector a, float_vector b, float_vector c) {
  return _mm512_fmadd_ps(a, b, c);
}
inline double_vector fused(double_vector a, double_vector b, double_vector c) {
  return _mm512_fmadd_pd(a, b, c);
}
inline float_vector fused_negative(float_vector a, float_vector b, float_vector c) {
  return _mm512_fnmadd_ps(a, b, c);
}
inline double_vector fused_negative(double_vector a, double_vector b, double_vector c) {
  return _mm512_fnmadd_pd(a, b, c);
}

/// The smaller and the larger one; b if one of them is NaN.
inline float_vector smaller(float_vector a, float_vector b) { return _mm512_min_ps(a, b); }
inline float_vector larger(float_vector a, float_vector b) { return _mm512_max_ps(a, b); }
inline double_vector smaller(double_vector a, double_vector b) { return _mm512_min_pd(a, b); }
inline double_vector larger(double_vector a, double_vector b) { return _mm512_max_pd(a, b); }

inline int_vector sum(int_vector a, int_vector b) { return _mm512_add_epi32(a, b); }
inline int_vector difference(int_vector a, int_vector b) { return _mm512_sub_epi32(a, b); }
inline int_vector both(int_vector a, int_vector b) { return _mm512_and_si512(a, b); }
inline int_vector either(int_vector a, int_vector b) { return _mm512_or_si512(a, b); }
inline int_vector not_negative(int_vector a) { return _mm512_max_epi32(a, int_vector{}); }
template <int bits>
inline int_vector shifted_right(int_vector a) {
  return _mm512_srai_epi32(a, bits);
}
inline float_vector to_floats(int_vector a) { return _mm512_cvtepi32_ps(a); }

inline lane_mask is_not_less(float_vector a, float_vector b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_NLT_UQ);
}
inline lane_mask either(lane_mask a, lane_mask b) { return static_cast<lane_mask>(a | b); }
inline bool any_lane(lane_mask mask) { return mask != 0; }
inline float_vector select(lane_mask mask, float_vector yes, float_vector no) {
  return _mm512_mask_blend_ps(mask, no, yes);
}

/// a * 2^exponent, for lanes of a between 1/2 and 2, and an exponent of at most 254 (float32) or
/// 2046 (float64) in magnitude.
inline float_vector scaled(float_vector a, float_vector exponent) {
  return _mm512_scalef_ps(a, exponent);
}
inline double_vector scaled(double_vector a, double_vector exponent) {
  return _mm512_scalef_pd(a, exponent);
}

/// Gives each lane the entry of its index, which is taken modulo 16.
inline float_vector look_up(const float* table, int_vector index) {
  return _mm512_permutexvar_ps(index, _mm512_load_ps(table));
}

struct halves {
  double_vector low, high;
};
inline halves widened_lanes(float_vector a) {
  return {_mm512_cvtps_pd(_mm512_castps512_ps256(a)),
          _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1))};
}
inline float_vector narrowed_lanes(const halves& a) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(a.low)), _mm512_cvtpd_ps(a.high),
                            1);
}
/// Negates `a` if the lowest bit of `parity` is set.
inline double_vector negated_if_odd(double_vector a, double_vector parity) {
  const __m512i sign = _mm512_slli_epi64(_mm512_castpd_si512(parity), 63);
  return _mm512_castsi512_pd(_mm512_xor_si512(_mm512_castpd_si512(a), sign));
}
#else
using float_vector = __m256;
using double_vector = __m256d;
using int_vector = __m256i;
using lane_mask = __m256;

inline float_vector all_lanes(float value) { return _mm256_set1_ps(value); }
inline int_vector all_lanes(int value) { return _mm256_set1_epi32(value); }
inline double_vector all_lanes(double value) { return _mm256_set1_pd(value); }
inline int_vector bits_of_lanes(float_vector a) { return _mm256_castps_si256(a); }
inline float_vector lanes_of_bits(int_vector a) { return _mm256_castsi256_ps(a); }

inline float_vector fused(float_vector a, float_vector b, float_vector c) {
  return _mm256_fmadd_ps(a, b, c);
}
inline double_vector fused(double_vector a, double_vector b, double_vector c) {
  return _mm256_fmadd_pd(a, b, c);
}
inline float_vector fused_negative(float_vector a, float_vector b, float_vector c) {
  return _mm256_fnmadd_ps(a, b, c);
}
inline double_vector fused_negative(double_vector a, double_vector b, double_vector c) {
  return _mm256_fnmadd_pd(a, b, c);
}

inline float_vector smaller(float_vector a, float_vector b) { return _mm256_min_ps(a, b); }
inline float_vector larger(float_vector a, float_vector b) { return _mm256_max_ps(a, b); }
inline double_vector smaller(double_vector a, double_vector b) { return _mm256_min_pd(a, b); }
inline double_vector larger(double_vector a, double_vector b) { return _mm256_max_pd(a, b); }

inline int_vector sum(int_vector a, int_vector b) { return _mm256_add_epi32(a, b); }
inline int_vector difference(int_vector a, int_vector b) { return _mm256_sub_epi32(a, b); }
inline int_vector both(int_vector a, int_vector b) { return _mm256_and_si256(a, b); }
inline int_vector either(int_vector a, int_vector b) { return _mm256_or_si256(a, b); }
inline int_vector not_negative(int_vector a) { return _mm256_max_epi32(a, int_vector{}); }
template <int bits>
inline int_vector shifted_right(int_vector a) {
  return _mm256_srai_epi32(a, bits);
}
inline float_vector to_floats(int_vector a) { return _mm256_cvtepi32_ps(a); }

inline lane_mask is_not_less(float_vector a, float_vector b) {
  return _mm256_cmp_ps(a, b, _CMP_NLT_UQ);
}
inline lane_mask either(lane_mask a, lane_mask b) { return _mm256_or_ps(a, b); }
inline bool any_lane(lane_mask mask) { return _mm256_movemask_ps(mask) != 0; }
inline float_vector select(lane_mask mask, float_vector yes, float_vector no) {
  return _mm256_blendv_ps(no, yes, mask);
}

// Two factors, because 2^exponent itself may be infinite or subnormal. The first product is exact.
inline float_vector scaled(float_vector a, float_vector exponent) {
  const __m256i whole = _mm256_cvtps_epi32(exponent);
  const __m256i half = _mm256_srai_epi32(whole, 1);
  const auto power = [](__m256i e) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(e, _mm256_set1_epi32(127)), 23));
  };
  return a * power(half) * power(_mm256_sub_epi32(whole, half));
}
inline double_vector scaled(double_vector a, double_vector exponent) {
  const __m128i whole = _mm256_cvtpd_epi32(exponent);
  const __m128i half = _mm_srai_epi32(whole, 1);
  const auto power = [](__m128i e) {
    const __m256i biased = _mm256_cvtepi32_epi64(_mm_add_epi32(e, _mm_set1_epi32(1023)));
    return _mm256_castsi256_pd(_mm256_slli_epi64(biased, 52));
  };
  return a * power(half) * power(_mm_sub_epi32(whole, half));
}

inline float_vector look_up(const float* table, int_vector index) {
  const __m256 low = _mm256_permutevar8x32_ps(_mm256_load_ps(table), index);
  const __m256 high = _mm256_permutevar8x32_ps(_mm256_load_ps(table + 8), index);
  return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(index, 28)));
}

struct halves {
  double_vector low, high;
};
inline halves widened_lanes(float_vector a) {
  return {_mm256_cvtps_pd(_mm256_castps256_ps128(a)), _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1))};
}
inline float_vector narrowed_lanes(const halves& a) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(a.low)),
                              _mm256_cvtpd_ps(a.high), 1);
}
inline double_vector negated_if_odd(double_vector a, double_vector parity) {
  const __m256i sign = _mm256_slli_epi64(_mm256_castpd_si256(parity), 63);
  return _mm256_castsi256_pd(_mm256_xor_si256(_mm256_castpd_si256(a), sign));
}
#endif

/// c[0] + c[1] x + c[2] x^2 + …, term after term.
template <class Vector, class Number, std::size_t count>
inline Vector polynomial(const Number (&c)[count], Vector x) {
  Vector result = all_lanes(c[count - 1]);
  for (std::size_t k = count - 1; k-- > 0;) result = fused(result, x, all_lanes(c[k]));
  return result;
}

/// The same polynomial. Even and odd terms are added apart, so that a processor need not wait for
/// one to begin the next.
template <class Vector, class Number, std::size_t count>
inline Vector polynomial_by_parity(const Number (&c)[count], Vector x) {
  static_assert(count % 2 == 0);
  const Vector square = x * x;
  Vector even = all_lanes(c[count - 2]), odd = all_lanes(c[count - 1]);
  for (std::size_t k = count - 2; k > 0; k -= 2) {
    even = fused(even, square, all_lanes(c[k - 2]));
    odd = fused(odd, square, all_lanes(c[k - 1]));
  }
  return fused(odd, x, even);
}

inline float_vector magnitude(float_vector a) {
  return lanes_of_bits(both(bits_of_lanes(a), all_lanes(0x7fffffff)));
}

}  // namespace
}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
#endif
