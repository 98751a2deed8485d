// Elementary functions of vectors of float64, made like those of float32 (float_functions.hpp) and
// compared with the C library's functions of long double.
#pragma once

#if defined(__AVX2__)
#include "ops/kernels/elementary/lanes.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

/// e^x = 2^k e^r with k = x / ln 2 rounded. ln 2 has two parts: the difference of x and k times the
/// first one has no rounding error if |x| >= 1/2, and is the r that is added to 1. The product with
/// the second part corrects that sum, together with the sum's own rounding error.
inline double_vector exponential(double_vector x) {
  constexpr double shifter = 0x1.8p52;  // sums with it have no bits for a fraction
  constexpr double terms[] = {0x1.000000000000ap-1,  0x1.55555555554fap-3,  0x1.5555555550879p-5,
                              0x1.1111111127b9cp-7,  0x1.6c16c1842aba7p-10, 0x1.a01a012a74104p-13,
                              0x1.a0199a0adf67cp-16, 0x1.71df250d06c7ap-19, 0x1.28ad7407bba66p-22,
                              0x1.ad7fe3b876fc3p-26};
  // Beyond these limits the result is 0 or infinite. NaN stays NaN.
  const double_vector limited = smaller(all_lanes(710.0), larger(all_lanes(-746.0), x));
  const double_vector k =
      fused(limited, all_lanes(0x1.71547652b82fep0), all_lanes(shifter)) - all_lanes(shifter);
  const double_vector first = fused_negative(k, all_lanes(0x1.62e42fefa39efp-1), limited);
  const double_vector last_part = all_lanes(0x1.abc9e3b39803fp-56);
  const double_vector r = fused_negative(k, last_part, first);
  const double_vector sum_with_1 = all_lanes(1.0) + first;
  const double_vector error = fused_negative(k, last_part, first - (sum_with_1 - all_lanes(1.0)));
  return scaled(sum_with_1 + fused(r * r, polynomial_by_parity(terms, r), error), k);
}

}  // namespace
}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
#endif
