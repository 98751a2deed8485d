// Elementary functions of vectors of float32. They are inlined into the loops of the kernels, so
// that the constants stay in registers and several vectors are computed at once.
//
// Each function has one sequence of IEEE operations for all instruction sets, so AVX2 and AVX-512
// give the same bits. Polynomials are near the minimax ones (weighted least squares, repeated with
// weights that grow with the error), and their coefficients are rounded one by one. The results
// were compared with the C library's functions of double; docs/numerics.md has the largest errors.
#pragma once

#if defined(__AVX2__)
#include "ops/kernels/elementary/lanes.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

// ---- exp and log -------------------------------------------------------------------------------

/// e^x = 2^k e^r with k = x / ln 2 rounded, so |r| <= ln 2 / 2. The sum 1 + r is corrected by its
/// rounding error.
inline float_vector exponential(float_vector x) {
  constexpr float shifter = 0x1.8p23f;  // sums with it have no bits for a fraction
  constexpr float terms[] = {0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558cp-5f, 0x1.1239ep-7f,
                             0x1.6a3d7p-10f};
  // Beyond these limits the result is 0 or infinite. NaN stays NaN.
  const float_vector limited = smaller(all_lanes(89.0f), larger(all_lanes(-104.0f), x));
  const float_vector k =
      fused(limited, all_lanes(0x1.715476p0f), all_lanes(shifter)) - all_lanes(shifter);
  const float_vector r = fused_negative(k, all_lanes(-0x1.05c61p-29f),
                                        fused_negative(k, all_lanes(0x1.62e43p-1f), limited));
  const float_vector sum_with_1 = all_lanes(1.0f) + r;
  const float_vector error = r - (sum_with_1 - all_lanes(1.0f));
  return scaled(sum_with_1 + fused(r * r, polynomial(terms, r), error), k);
}

/// log(2^k m) = k ln 2 + log(1 + f) with m = 1 + f between 2/3 and 4/3. Lanes that are not positive
/// normal numbers get the result of `others`.
template <class Others>
inline float_vector logarithm(float_vector x, Others others) {
  constexpr float terms[] = {-0.5f,          0x1.555506p-2f,  -0x1.fffef8p-3f,
                             0x1.99d062p-3f, -0x1.559c8ap-3f, 0x1.1ed3acp-3f,
                             -0x1.f3324p-4f, 0x1.1e76d6p-3f,  -0x1.07c0f2p-3f};
  const int_vector bits = bits_of_lanes(x);
  const int_vector above = difference(bits, all_lanes(0x3f2aaaab));  // the bits of 2/3
  const int_vector exponent = both(above, all_lanes(static_cast<int>(0xff800000u)));
  const float_vector f = lanes_of_bits(difference(bits, exponent)) - all_lanes(1.0f);
  const float_vector k = to_floats(shifted_right<23>(above));
  // ln 2 has two parts. The first one has few bits, so that the product with k is exact.
  const float_vector whole = k * all_lanes(0x1.62e4p-1f);
  const float_vector high = whole + f;
  const float_vector error = f - (high - whole);
  const float_vector low = fused(k, all_lanes(0x1.7f7d1cp-20f), error);
  const float_vector result = high + fused(f * f, polynomial(terms, f), low);
  // The largest subnormal number is less than all normal ones.
  const lane_mask is_other = either(is_not_less(all_lanes(0x1.fffffcp-127f), x),
                                    is_not_less(x, all_lanes(__builtin_inff())));
  if (any_lane(is_other)) [[unlikely]]
    return select(is_other, others(x), result);
  return result;
}

// ---- sin and cos -------------------------------------------------------------------------------

/// sin(x) or cos(x), for |x| below `angle_limit`. With r = x - k pi, sin(x) is sin(r) if k is even
/// and -sin(r) if k is odd. For cos, k is a whole number less 1/2, and cos(x) = sin(x + pi / 2).
/// Double has enough bits to subtract k pi, as a sum of two numbers, for every float32 in range.
template <bool is_cosine>
inline double_vector sine_of(double_vector x) {
  constexpr double shifter = 0x1.8p52;
  constexpr double terms[] = {1, -0x1.55554bc5a5eabp-3, 0x1.110ed30d7225p-7, -0x1.9f6fe85ec890dp-13,
                              0x1.5dbc9edbbe3fdp-19};
  const double_vector turns = all_lanes(0x1.45f306dc9c883p-2);
  double_vector odd, k;  // the lowest bit of `odd` is the parity of k, or of k + 1/2
  if constexpr (is_cosine) {
    odd = fused(x, turns, all_lanes(0.5)) + all_lanes(shifter);
    k = (odd - all_lanes(shifter)) - all_lanes(0.5);
  } else {
    odd = fused(x, turns, all_lanes(shifter));
    k = odd - all_lanes(shifter);
  }
  const double_vector r = fused_negative(k, all_lanes(0x1.1a62633145c07p-53),
                                         fused_negative(k, all_lanes(0x1.921fb54442d18p1), x));
  return negated_if_odd(r * polynomial(terms, r * r), odd);
}

inline constexpr float angle_limit = 0x1p30f;

/// Lanes beyond the limit, infinite lanes and NaN get the result of `others`.
template <bool is_cosine, class Others>
inline float_vector sine_or_cosine(float_vector x, Others others) {
  const halves wide = widened_lanes(x);
  const float_vector result =
      narrowed_lanes({sine_of<is_cosine>(wide.low), sine_of<is_cosine>(wide.high)});
  const lane_mask is_other = is_not_less(magnitude(x), all_lanes(angle_limit));
  if (any_lane(is_other)) [[unlikely]]
    return select(is_other, others(x), result);
  return result;
}

// ---- tanh --------------------------------------------------------------------------------------

// Intervals of |x|: from 0 to 1/8, and then the two halves of each power of two, up to 16. Each has
// a column with its centre, with tanh(centre), and with the coefficients of a polynomial p. Then
// tanh(x) = tanh(centre) + r p(r) with r = |x| - centre; it is x + x p(x) in the first interval.
// The centres were chosen so that tanh(centre) is a float32 within 1/40 of its last place.
alignas(64) inline constexpr float tanh_table[9][16] = {
    {0, 0x1.3febc8p-3f, 0x1.bffda6p-3f, 0x1.400624p-2f, 0x1.c0023cp-2f, 0x1.400dfap-1f,
     0x1.c0129cp-1f, 0x1.3fed1ep0f, 0x1.bff09ap0f, 0x1.3ff6bcp1f, 0x1.c01338p1f, 0x1.3ffc3cp2f,
     0x1.bfe89p2f, 0x1.14e43ap3f, 0x1.14e43ap3f, 0x1.14e43ap3f},
    {0, 0x1.3d580cp-3f, 0x1.b8fac6p-3f, 0x1.35ff1ep-2f, 0x1.a5747ap-2f, 0x1.1bfe2cp-1f,
     0x1.686fb4p-1f, 0x1.b247a4p-1f, 0x1.e1f878p-1f, 0x1.f92486p-1f, 0x1.ff1174p-1f, 0x1.fff418p-1f,
     0x1.ffffc8p-1f, 0x1.fffffep-1f, 0x1.fffffep-1f, 0x1.fffffep-1f},
    {0, 0x1.f3b4e6p-1f, 0x1.e84308p-1f, 0x1.d113c4p-1f, 0x1.a944f6p-1f, 0x1.627a08p-1f,
     0x1.0242d2p-1f, 0x1.1f4904p-2f, 0x1.d2617p-4f, 0x1.b3ee28p-6f, 0x1.dca8dap-9f, 0x1.7cf836p-13f,
     0x1.bfb3c2p-19f, 0x1.05f21ep-23f, 0x1.05f21ep-23f, 0x1.05f21ep-23f},
    {0, -0x1.35b98p-3f, -0x1.a488c2p-3f, -0x1.19962ep-2f, -0x1.5e0ff4p-2f, -0x1.893cd6p-2f,
     -0x1.6b9eaap-2f, -0x1.e75a32p-3f, -0x1.b706d6p-4f, -0x1.ae16fp-6f, -0x1.dbcba2p-9f,
     -0x1.7d301ap-13f, -0x1.bd5c42p-19f, -0x1.83395ep-23f, -0x1.83395ep-23f, -0x1.83395ep-23f},
    {-0x1.555554p-2f, -0x1.34fea8p-2f, -0x1.183844p-2f, -0x1.c1907p-3f, -0x1.16d828p-3f,
     -0x1.2361aap-6f, 0x1.4f4142p-4f, 0x1.bbb344p-4f, 0x1.01d11p-4f, 0x1.170424p-6f, 0x1.3c0a94p-9f,
     0x1.fc2e3cp-14f, 0x1.2a8712p-19f, 0x1.59e4b8p-24f, 0x1.59e4b8p-24f, 0x1.59e4b8p-24f},
    {0, 0x1.907e74p-4f, 0x1.04f42ap-3f, 0x1.43f2c2p-3f, 0x1.5c2d4ap-3f, 0x1.1a5474p-3f,
     0x1.f1ba5p-5f, -0x1.9b7412p-7f, -0x1.81781ap-6f, -0x1.07f108p-7f, -0x1.399244p-10f,
     -0x1.f5e4acp-15f, -0x1.34bb5cp-20f, 0x1.5c93ap-22f, 0x1.5c93ap-22f, 0x1.5c93ap-22f},
    {0x1.110d5ep-3f, -0x1.596c5ep-3f, 0x1.ecad8cp-5f, 0x1.1738ap-5f, -0x1.977bd6p-7f,
     -0x1.b822ccp-5f, -0x1.e9b4bcp-5f, -0x1.3b098ep-6f, 0x1.e490eep-9f, 0x1.77372cp-9f,
     0x1.ee6f06p-12f, 0x1.91554p-16f, 0x1.dac108p-22f, 0x1.e6d2cap-26f, 0x1.e6d2cap-26f,
     0x1.e6d2cap-26f},
    {0, -0x1.35382ep-1f, -0x1.b765p-4f, -0x1.5bd43ap-4f, -0x1.098e6ep-4f, -0x1.800b62p-6f,
     0x1.a1abfap-7f, 0x1.eea278p-7f, 0x1.10f094p-9f, -0x1.6e86bep-11f, -0x1.48fc74p-13f,
     -0x1.3523aep-17f, -0x1.24da3ap-23f, -0x1.3669fep-21f, -0x1.3669fep-21f, -0x1.3669fep-21f},
    {-0x1.b44478p-5f, 0x1.30b532p7f, 0x1.bd0268p3f, 0x1.91699ep0f, 0x1.d44396p-1f, -0x1.4a1314p-6f,
     0x1.6cd18ep-5f, -0x1.23b356p-8f, -0x1.044654p-9f, 0x1.f179a6p-15f, 0x1.5ed502p-15f,
     0x1.5f13acp-19f, 0x1.92604ep-25f, -0x1.d5b0a6p-26f, -0x1.d5b0a6p-26f, -0x1.d5b0a6p-26f},
};

inline float_vector hyperbolic_tangent(float_vector x) {
  const int_vector sign = both(bits_of_lanes(x), all_lanes(static_cast<int>(0x80000000u)));
  const float_vector size = smaller(all_lanes(9.3f), magnitude(x));
  const int_vector index = not_negative(
      shifted_right<22>(difference(bits_of_lanes(size), all_lanes(0x3e000000 - (1 << 22)))));
  const float_vector r = size - look_up(tanh_table[0], index);
  float_vector slope = look_up(tanh_table[8], index);
  for (int k = 7; k >= 2; --k) slope = fused(slope, r, look_up(tanh_table[k], index));
  const float_vector start =
      larger(look_up(tanh_table[1], index), smaller(size, all_lanes(0.125f)));
  const float_vector result = fused(r, slope, start);
  return lanes_of_bits(either(bits_of_lanes(result), sign));
}

}  // namespace
}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
#endif
