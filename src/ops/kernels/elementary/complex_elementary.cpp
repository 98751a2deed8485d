// Kernels of the elementary functions of complex numbers. They call the C library, whose special
// cases cannot be vectorised, so they exist for the baseline only, except exp (complex_vectors.hpp).
// exp2, expm1 and log1p, which are not in the library, are computed in double for complex64 too, and
// rounded once.
#include <algorithm>
#include <cmath>
#include <complex>

#include "ops/kernels/elementary/complex_library.hpp"
#include "ops/kernels/elementwise/loops.hpp"
#include "ops/kernels/elementwise/rounding_error.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

template <class Part, class Function>
void set_unary(kernel_table& table, operation op, Function) {
  using Complex = complex_of<Part>;
  table.set(op, type_of<Complex>, kernel_for<Complex, Complex>([](Complex a) {
              const std::complex<Part> result = Function{}(std::complex<Part>(a.real, a.imaginary));
              return Complex{result.real(), result.imag()};
            }));
}

// ---- sums of two doubles -----------------------------------------------------------------------

/// A number of about 105 bits: the exact sum of two doubles, of which `high` is the rounded sum.
/// The operators have relative errors below 2^-102, also if a sum is far smaller than its operands.
/// Source   M. Joldes, J.-M. Muller, V. Popescu, Tight and rigorous error bounds for basic building
///          blocks of double-word arithmetic, ACM Transactions on Mathematical Software 44 (2017)
struct double_word {
  double high;
  double low;
};

/// a + b without rounding, if nothing overflows.
double_word exact_sum(double a, double b) {
  const double rounded = a + b;
  return {rounded, rounding_error(a, b, rounded)};
}

/// a * b without rounding, if nothing overflows and no bit of the product is below 2^-1074.
double_word exact_product(double a, double b) {
  const double rounded = a * b;
  return {rounded, std::fma(a, b, -rounded)};
}

double_word operator+(double_word a, double_word b) {
  const double_word high = exact_sum(a.high, b.high), low = exact_sum(a.low, b.low);
  const double_word most = exact_sum(high.high, high.low + low.high);
  return exact_sum(most.high, most.low + low.low);
}

double_word operator*(double_word a, double_word b) {
  const double_word high = exact_product(a.high, b.high);
  return exact_sum(high.high, high.low + (a.high * b.low + a.low * b.high));
}

double_word operator/(double_word a, double b) {
  const double near = a.high / b;
  const double_word back = exact_product(near, b);
  return exact_sum(near, (((a.high - back.high) - back.low) + a.low) / b);
}

/// Sums a series. Term 0 is `first`, and term k + 1 is term k times `factor` / divisor(k). The
/// terms must become smaller.
template <class Divisor>
double_word sum_of_series(double_word first, double_word factor, Divisor divisor) {
  double_word total = first, term = first;
  for (int k = 0; std::fabs(term.high) > 0x1p-110 * std::fabs(total.high); ++k) {
    term = term * factor / divisor(k);
    total = total + term;
  }
  return total;
}

// ---- exp2 --------------------------------------------------------------------------------------

// 2^a = 2^x (cos(y ln 2) + i sin(y ln 2)). The angle is a sum of two doubles: the error of a single
// one would turn the result by up to |y| 2^-54. The second double holds the error of the product,
// and the product of y with the rest of ln 2. The formulas for the sine and the cosine of a sum
// combine the two doubles, because the second one is not small if y is large.
std::complex<double> exponential_2(std::complex<double> a) {
  constexpr double ln_2 = 0x1.62e42fefa39efp-1, rest_of_ln_2 = 0x1.abc9e3b39803fp-56;
  const double x = a.real(), y = a.imag();
  if (y == 0) return {std::exp2(x), y};
  if (std::isinf(x)) return std::exp(std::complex<double>(x, y * ln_2));
  const double_word angle = exact_product(y, ln_2);
  const double rest = angle.low + y * rest_of_ln_2;
  const double cosine = std::cos(angle.high), sine = std::sin(angle.high);
  const double cosine_of_rest = std::cos(rest), sine_of_rest = std::sin(rest);
  // 2^x has two factors, because it may overflow although both parts of the result are finite.
  const double exponent = std::min(x, 1000.0);
  const double factor = std::exp2(exponent), last_factor = std::exp2(x - exponent);
  return {(cosine * cosine_of_rest - sine * sine_of_rest) * factor * last_factor,
          (sine * cosine_of_rest + cosine * sine_of_rest) * factor * last_factor};
}

// ---- expm1 -------------------------------------------------------------------------------------

// e^x cos y - 1 for |x| <= 1 and |y| <= 1, with all digits even where it nearly vanishes. There x
// is about y^2 / 2, so the difference of these two is exact, or nearly so, and is computed first.
// What remains of both series is of the order of y^4, and is computed with 50 bits more than the
// result has.
double real_part_of_expm1(double x, double y) {
  const double_word square = exact_product(y, y);
  const double_word minus_square{-square.high, -square.low};
  const double_word minus_half{-square.high / 2, -square.low / 2};
  // e^x - 1 = x + growth, and cos y - 1 = minus_half + bend.
  const double_word growth =
      sum_of_series(exact_product(x, x) / 2, double_word{x, 0}, [](int k) { return 3.0 + k; });
  const double_word bend = sum_of_series(square * square / 24, minus_square,
                                         [](int k) { return (2.0 * k + 5) * (2.0 * k + 6); });
  const double_word difference = exact_sum(x, minus_half.high) + double_word{minus_half.low, 0};
  const double_word both = (double_word{x, 0} + growth) * (minus_half + bend);
  return (difference + (growth + bend + both)).high;
}

// e^a - 1 = (expm1(x) cos y - 2 sin^2(y / 2)) + i e^x sin y: the formula has no difference of
// numbers near 1. If x is infinite, it is not used: terms would cancel, or one term would be NaN
// although the other one decides the result. Nor is it used for large x, where e^x may overflow
// although the result does not.
std::complex<double> exponential_minus_1(std::complex<double> a) {
  const double x = a.real(), y = a.imag();
  if (y == 0) return {std::expm1(x), y};
  if (std::isinf(x) || x > 700) return std::exp(a) - 1.0;
  const double sine_of_half = std::sin(y / 2);
  const double grown = std::expm1(x) * std::cos(y), turned = 2 * sine_of_half * sine_of_half;
  const bool is_near_0 = std::fabs(x) <= 1 && std::fabs(y) <= 1;
  const bool cancels = grown < 4 * turned && turned < 4 * grown;
  return {is_near_0 && cancels ? real_part_of_expm1(x, y) : grown - turned,
          std::exp(x) * std::sin(y)};
}

// ---- log1p -------------------------------------------------------------------------------------

// |1 + x + iy|^2 - 1 = 2x + x^2 + y^2, with all digits even where it nearly vanishes. The five
// terms are exact. Each pass replaces them by their rounded sum, which becomes the last term, and
// the errors of its additions. So the exact sum of the terms stays the same, but less and less of
// it cancels.
// Source   T. Ogita, S. M. Rump, S. Oishi, Accurate sum and dot product, SIAM Journal on Scientific
//          Computing 26 (2005), algorithm SumK
double squared_magnitude_minus_1(double x, double y) {
  const double_word xx = exact_product(x, x), yy = exact_product(y, y);
  double terms[] = {xx.low, yy.low, yy.high, xx.high, 2 * x};
  for (int pass = 0; pass < 4; ++pass)
    for (int i = 1; i < 5; ++i) {
      const double_word pair = exact_sum(terms[i - 1], terms[i]);
      terms[i - 1] = pair.low;
      terms[i] = pair.high;
    }
  return (((terms[0] + terms[1]) + terms[2]) + terms[3]) + terms[4];
}

// log |1 + a| = log1p(|1 + a|^2 - 1) / 2. If the logarithm is not near 0, the rounded 1 + a is
// exact enough.
std::complex<double> logarithm_of_1_plus(std::complex<double> a) {
  const double x = a.real(), y = a.imag();
  if (std::fabs(x) < 4 && std::fabs(y) < 4) {
    const double excess = squared_magnitude_minus_1(x, y);
    if (excess >= -0.5) return {std::log1p(excess) / 2, std::atan2(y, 1 + x)};
  }
  return std::log(1.0 + a);
}

// ---- the table ---------------------------------------------------------------------------------

template <class Part>
void fill(kernel_table& table) {
  using Value = std::complex<Part>;
  set_unary<Part>(table, operation::square_root, [](Value a) { return std::sqrt(a); });
  set_unary<Part>(table, operation::exponential, [](Value a) { return std::exp(a); });
  set_unary<Part>(table, operation::logarithm, [](Value a) { return std::log(a); });
  set_unary<Part>(table, operation::logarithm_2, [](Value a) {
    const Value natural = std::log(a);
    constexpr auto scale = static_cast<Part>(1.442695040888963407359924681001892137L);  // 1 / ln 2
    return Value(natural.real() * scale, natural.imag() * scale);
  });
  set_unary<Part>(table, operation::logarithm_10, [](Value a) {
    const Value natural = std::log(a);
    constexpr auto scale = static_cast<Part>(0.434294481903251827651128918916605082L);  // 1 / ln 10
    return Value(natural.real() * scale, natural.imag() * scale);
  });
  set_unary<Part>(table, operation::sine, [](Value a) { return std::sin(a); });
  set_unary<Part>(table, operation::cosine, [](Value a) { return std::cos(a); });
  set_unary<Part>(table, operation::tangent, [](Value a) { return std::tan(a); });
  set_unary<Part>(table, operation::arc_sine, [](Value a) { return std::asin(a); });
  set_unary<Part>(table, operation::arc_cosine, [](Value a) { return std::acos(a); });
  set_unary<Part>(table, operation::arc_tangent, [](Value a) { return std::atan(a); });
  set_unary<Part>(table, operation::hyperbolic_sine, [](Value a) { return std::sinh(a); });
  set_unary<Part>(table, operation::hyperbolic_cosine, [](Value a) { return std::cosh(a); });
  set_unary<Part>(table, operation::hyperbolic_tangent, [](Value a) { return std::tanh(a); });
  set_unary<Part>(table, operation::area_sine, [](Value a) { return std::asinh(a); });
  set_unary<Part>(table, operation::area_cosine, [](Value a) { return std::acosh(a); });
  set_unary<Part>(table, operation::area_tangent, [](Value a) { return std::atanh(a); });
  set_unary<Part>(table, operation::exponential_2, [](Value a) { return Value(exponential_2(a)); });
  set_unary<Part>(table, operation::exponential_minus_1,
                  [](Value a) { return Value(exponential_minus_1(a)); });
  set_unary<Part>(table, operation::logarithm_of_1_plus,
                  [](Value a) { return Value(logarithm_of_1_plus(a)); });
  table.set(operation::power, type_of<complex_of<Part>>,
            kernel_for<complex_of<Part>, complex_of<Part>, complex_of<Part>>(
                [](complex_of<Part> a, complex_of<Part> b) {
                  // x^0 = 1, also for x = 0, as for floats; the general formula takes the logarithm
                  // of 0.
                  if (b.real == 0 && b.imaginary == 0) return complex_of<Part>{1, 0};
                  const Value result =
                      std::pow(Value(a.real, a.imaginary), Value(b.real, b.imaginary));
                  return complex_of<Part>{result.real(), result.imag()};
                }));
}

}  // namespace

void fill_complex_elementary(kernel_table& table) {
  fill<float>(table);
  fill<double>(table);
}

}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA

namespace shale::ops::kernels {

namespace {

template <class Part>
void replace_by_exponential(Part (&number)[2]) noexcept {
  const std::complex<Part> result = std::exp(std::complex<Part>(number[0], number[1]));
  number[0] = result.real();
  number[1] = result.imag();
}

}  // namespace

void exponential_by_library(float (&number)[2]) noexcept { replace_by_exponential(number); }
void exponential_by_library(double (&number)[2]) noexcept { replace_by_exponential(number); }

}  // namespace shale::ops::kernels
