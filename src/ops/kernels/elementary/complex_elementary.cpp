// Kernels of the elementary functions of complex numbers. They call the C library, whose special
// cases cannot be vectorised, so they exist for the baseline only.
#include <cmath>
#include <complex>

#include "ops/kernels/elementwise/loops.hpp"

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

template <class Part>
std::complex<Part> exponential_2(std::complex<Part> a) {
  if (a.imag() == 0) return {std::exp2(a.real()), a.imag()};
  constexpr auto ln_2 = static_cast<Part>(0.693147180559945309417232121458176568L);
  if (std::isinf(a.real())) return std::exp(std::complex<Part>(a.real(), a.imag() * ln_2));
  const Part length = std::exp2(a.real());
  return std::polar(Part{1}, a.imag() * ln_2) * length;
}

// e^a - 1 = (expm1(x) cos y - 2 sin^2(y / 2)) + i e^x sin y: the formula has no difference of
// numbers near 1. If x is infinite, it is not used: terms would cancel, or one term would be NaN
// although the other one decides the result.
template <class Part>
std::complex<Part> exponential_minus_1(std::complex<Part> a) {
  if (a.imag() == 0) return {std::expm1(a.real()), a.imag()};
  if (std::isinf(a.real())) return std::exp(a) - Part{1};
  const Part half = std::sin(a.imag() / 2);
  return {std::expm1(a.real()) * std::cos(a.imag()) - 2 * half * half,
          std::exp(a.real()) * std::sin(a.imag())};
}

// log |1 + a| = log1p(x (2 + x) + y^2) / 2. Where the sum is not small, 1 + a is exact enough.
template <class Part>
std::complex<Part> logarithm_of_1_plus(std::complex<Part> a) {
  const Part x = a.real();
  const Part y = a.imag();
  if (!(std::fabs(x) < Part{0.5} && std::fabs(y) < Part{0.5})) return std::log(Part{1} + a);
  return {std::log1p(x * (2 + x) + y * y) / 2, std::atan2(y, 1 + x)};
}

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
  set_unary<Part>(table, operation::exponential_2, [](Value a) { return exponential_2(a); });
  set_unary<Part>(table, operation::exponential_minus_1,
                  [](Value a) { return exponential_minus_1(a); });
  set_unary<Part>(table, operation::logarithm_of_1_plus,
                  [](Value a) { return logarithm_of_1_plus(a); });
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
