// Kernels of the elementary functions of floats. On x86 they are within 1 ulp of the exact value
// (docs/numerics.md); on other processors, some functions of float64 are within 3 ulp.
//
// Units with wide vectors call SLEEF, whose `finz` functions give the same bits for AVX2 and
// AVX-512; exp, log, sin, cos and tanh of float32 are in float_functions.hpp, and exp of float64 is
// in double_functions.hpp. The baseline calls the C library, and SLEEF for some functions of float64
// on x86. If the C library's function of float32 is not within 1 ulp, the baseline calls the
// function of float64 and rounds. Functions that wide units leave out are the baseline's.
#include <math.h>

#include <type_traits>

#include "ops/kernels/elementary/complex_vectors.hpp"
#include "ops/kernels/elementary/double_functions.hpp"
#include "ops/kernels/elementary/float_functions.hpp"
#include "ops/kernels/elementary/vector_loops.hpp"
#include "ops/kernels/elementwise/loops.hpp"

namespace shale::ops::kernels::SHALE_KERNEL_ISA {
namespace {

template <class T, class Function>
void set_unary(kernel_table& table, operation op, Function function) {
  table.set(op, type_of<T>, kernel_for<T, T>(function));
}

template <class T, class Function>
void set_binary(kernel_table& table, operation op, Function function) {
  table.set(op, type_of<T>, kernel_for<T, T, T>(function));
}

#if defined(SHALE_X86_KERNELS)

/// Whether any lane of a comparison's result is set.
template <class Mask>
inline bool any(Mask mask) {
#if defined(__AVX512F__)
  const auto bits = (__m512i)mask;
  return _mm512_test_epi64_mask(bits, bits) != 0;
#elif defined(__AVX2__)
  const auto bits = (__m256i)mask;
  return _mm256_testz_si256(bits, bits) == 0;
#else
  return _mm_movemask_epi8((__m128i)mask) != 0;
#endif
}

/// Below these limits tan, sinh, tanh, asinh and atanh of x round to x. SLEEF may be 1 ulp off
/// there. (erf has another formula below the same limits.)
inline constexpr float tiny_float = 0x1p-13f;
inline constexpr double tiny_double = 0x1p-27;

/// Below these limits log1p(x) rounds to x. SLEEF first divides by 2 + x. If the quotient is
/// subnormal, the last bit is lost, and all bits of the smallest number.
inline constexpr float tiny_in_log1p_float = 0x1p-24f;
inline constexpr double tiny_in_log1p_double = 0x1p-53;

template <class Vector, class Element>
inline Vector unless_tiny(Vector x, Element limit, Vector otherwise) {
  return ((x < limit) & (x > -limit)) ? x : otherwise;
}

/// erf(x) is 2 / sqrt(pi) x for small x. The largest part of that, x, has no rounding error; SLEEF
/// may be more than 1 ulp off near the smallest numbers.
template <class Vector, class Element>
inline Vector error_unless_tiny(Vector x, Element limit, Vector otherwise) {
  constexpr auto slope_minus_1 = static_cast<Element>(0.128379167095512573896158903121545172L);
  return ((x < limit) & (x > -limit)) ? x + x * slope_minus_1 : otherwise;
}

/// Computes sinh or cosh. SLEEF overflows to infinity already if the result is nearly infinite, so
/// lanes beyond `limit` are computed by the C library's function of the next wider type.
template <class Vector, class Element, class Function, class Wider>
inline Vector with_ends(Vector x, Element limit, Function function, Wider wider) {
  Vector result = function(x);
  if (any((x > limit) | (x < -limit))) [[unlikely]] {
    for (std::size_t i = 0; i < sizeof(Vector) / sizeof(Element); ++i)
      if (x[i] > limit || x[i] < -limit) result[i] = wider(x[i]);
  }
  return result;
}

/// SLEEF's log1p, asinh, acosh and expm1 are infinite for some arguments whose results are finite.
/// These lanes are computed by the C library's function of the next wider type.
template <class Vector, class Wider>
inline Vector unless_infinite(Vector x, Vector result, Wider wider) {
  using Element = std::remove_cvref_t<decltype(x[0])>;
  constexpr Element infinity = __builtin_inf();
  const auto overflows =
      ((result == infinity) | (result == -infinity)) & (x < infinity) & (x > -infinity);
  if (any(overflows)) [[unlikely]] {
    for (std::size_t i = 0; i < sizeof(Vector) / sizeof(Element); ++i)
      if (overflows[i]) result[i] = static_cast<Element>(wider(x[i]));
  }
  return result;
}

// The functions of float64 that the baseline takes from SLEEF, too.
void fill_double_in_all_units(kernel_table& table) {
  using V = doubles::vector;
  set_vector<doubles>(table, operation::hyperbolic_sine, [](V x) {
    const auto vectors = [](V y) { return SHALE_SLEEF_DOUBLE(sinh)(y); };
    const auto ends = [](double z) { return static_cast<double>(sinhl(z)); };
    return unless_tiny(x, tiny_double, with_ends(x, 709.0, vectors, ends));
  });
  set_vector<doubles>(table, operation::hyperbolic_cosine, [](V x) {
    return with_ends(
        x, 709.0, [](V y) { return SHALE_SLEEF_DOUBLE(cosh)(y); },
        [](double y) { return static_cast<double>(coshl(y)); });
  });
  set_vector<doubles>(table, operation::hyperbolic_tangent,
                      [](V x) { return unless_tiny(x, tiny_double, SHALE_SLEEF_DOUBLE(tanh)(x)); });
  set_vector<doubles>(table, operation::logarithm_10,
                      [](V x) { return SHALE_SLEEF_DOUBLE(log10)(x); });
  set_vector<doubles>(table, operation::exponential_2,
                      [](V x) { return SHALE_SLEEF_DOUBLE(exp2)(x); });
  set_vector<doubles>(table, operation::exponential_minus_1, [](V x) {
    return unless_infinite(x, SHALE_SLEEF_DOUBLE(expm1)(x),
                           [](long double y) { return expm1l(y); });
  });
  set_vector<doubles>(table, operation::logarithm_of_1_plus, [](V x) {
    return unless_tiny(
        x, tiny_in_log1p_double,
        unless_infinite(x, SHALE_SLEEF_DOUBLE(log1p)(x), [](long double y) { return log1pl(y); }));
  });
  set_vector<doubles>(table, operation::area_sine, [](V x) {
    return unless_tiny(
        x, tiny_double,
        unless_infinite(x, SHALE_SLEEF_DOUBLE(asinh)(x), [](long double y) { return asinhl(y); }));
  });
  set_vector<doubles>(table, operation::area_cosine, [](V x) {
    return unless_infinite(x, SHALE_SLEEF_DOUBLE(acosh)(x),
                           [](long double y) { return acoshl(y); });
  });
  set_vector<doubles>(table, operation::area_tangent, [](V x) {
    return unless_tiny(x, tiny_double, SHALE_SLEEF_DOUBLE(atanh)(x));
  });
  set_vector<doubles>(table, operation::cube_root, [](V x) { return SHALE_SLEEF_DOUBLE(cbrt)(x); });
  set_vector<doubles>(table, operation::error_function, [](V x) {
    return error_unless_tiny(x, tiny_double, SHALE_SLEEF_DOUBLE(erf)(x));
  });
}

#endif

#if defined(SHALE_X86_KERNELS) && defined(__AVX2__)

/// SLEEF's sin, cos and tan choose the method of argument reduction by the largest angle in the
/// vector. So the last bit of a lane would depend on its neighbours, and results on the layout.
/// This function calls them twice: for the lanes below `limit`, with zeros in the other lanes, and
/// for the other lanes (also NaN), with a large angle in the lanes below.
template <class Vector, class Element, class Small, class Large>
inline Vector by_size(Vector x, Element limit, Small small, Large large) {
  const auto is_small = (x < limit) & (x > -limit);
  const Vector result = small(is_small ? x : Vector{});
  if (!any(~is_small)) [[likely]]
    return result;
  return is_small ? result : large(is_small ? Vector{} + 2 * limit : x);
}

// The limits at which SLEEF changes the method. Its interface does not name them.
inline constexpr float float_limit = 125;
inline constexpr double double_limit = 15, double_second_limit = 1e14;

template <class Function>
inline floats::vector of_angle(floats::vector x, Function function) {
  return by_size(x, float_limit, function, function);
}
template <class Function>
inline doubles::vector of_angle(doubles::vector x, Function function) {
  return by_size(x, double_limit, function, [&](doubles::vector y) {
    return by_size(y, double_second_limit, function, function);
  });
}

inline void exponential(const complex_lanes<doubles>& a, complex_lanes<doubles>& result) {
  using V = doubles::vector;
  constexpr double real_limit = 700, infinity = __builtin_inf();
  const V size = exponential(a.real);
  result.real = size * of_angle(a.imaginary, [](V x) { return SHALE_SLEEF_DOUBLE(cos)(x); });
  result.imaginary = size * of_angle(a.imaginary, [](V x) { return SHALE_SLEEF_DOUBLE(sin)(x); });
  const auto is_inside = (a.real < real_limit) & (a.real > -real_limit) & (a.imaginary < infinity) &
                         (a.imaginary > -infinity);
  if (any(~is_inside)) [[unlikely]]
    exponentials_by_library<doubles>(a, real_limit, infinity, result);
}

/// SLEEF's pow overflows to infinity already if the result is nearly infinite. Lanes near the limit
/// are computed by the C library.
inline doubles::vector power(doubles::vector x, doubles::vector y) {
  constexpr double infinity = __builtin_inf();
  doubles::vector result = SHALE_SLEEF_DOUBLE(pow)(x, y);
  const auto overflows = ((result == infinity) | (result == -infinity)) & (x < infinity) &
                         (x > -infinity) & (y < infinity) & (y > -infinity);
  if (any(overflows)) [[unlikely]] {
    for (int i = 0; i < width_of<doubles>; ++i)
      if (overflows[i]) result[i] = pow(x[i], y[i]);
  }
  return result;
}

// Exponentials, logarithms, powers, roots and the error function.
void fill_float_powers(kernel_table& table) {
  using V = floats::vector;
  set_vector<floats>(table, operation::exponential, [](V x) { return exponential(x); });
  set_vector<floats>(table, operation::exponential_2,
                     [](V x) { return SHALE_SLEEF_FLOAT(exp2)(x); });
  set_vector<floats>(table, operation::exponential_minus_1, [](V x) {
    return unless_infinite(x, SHALE_SLEEF_FLOAT(expm1)(x), [](double y) { return expm1(y); });
  });
  set_vector<floats>(table, operation::logarithm, [](V x) {
    return logarithm(x, [](V y) { return SHALE_SLEEF_FLOAT(log)(y); });
  });
  set_vector<floats>(table, operation::logarithm_2, [](V x) { return SHALE_SLEEF_FLOAT(log2)(x); });
  set_vector<floats>(table, operation::logarithm_10,
                     [](V x) { return SHALE_SLEEF_FLOAT(log10)(x); });
  set_vector<floats>(table, operation::logarithm_of_1_plus, [](V x) {
    return unless_tiny(
        x, tiny_in_log1p_float,
        unless_infinite(x, SHALE_SLEEF_FLOAT(log1p)(x), [](double y) { return log1p(y); }));
  });
  set_vectors<floats>(table, operation::power,
                      [](V x, V y) { return SHALE_SLEEF_FLOAT(pow)(x, y); });
  set_vector<floats>(table, operation::cube_root, [](V x) { return SHALE_SLEEF_FLOAT(cbrt)(x); });
  set_vector<floats>(table, operation::error_function, [](V x) {
    return error_unless_tiny(x, tiny_float, SHALE_SLEEF_FLOAT(erf)(x));
  });
}

// Functions of angles and of the sides of triangles.
void fill_float_angles(kernel_table& table) {
  using V = floats::vector;
  set_vector<floats>(table, operation::sine, [](V x) {
    return sine_or_cosine<false>(
        x, [](V y) { return of_angle(y, [](V z) { return SHALE_SLEEF_FLOAT(sin)(z); }); });
  });
  set_vector<floats>(table, operation::cosine, [](V x) {
    return sine_or_cosine<true>(
        x, [](V y) { return of_angle(y, [](V z) { return SHALE_SLEEF_FLOAT(cos)(z); }); });
  });
  set_vector<floats>(table, operation::tangent, [](V x) {
    return unless_tiny(x, tiny_float, of_angle(x, [](V y) { return SHALE_SLEEF_FLOAT(tan)(y); }));
  });
  set_vector<floats>(table, operation::arc_sine, [](V x) { return SHALE_SLEEF_FLOAT(asin)(x); });
  set_vector<floats>(table, operation::arc_cosine, [](V x) { return SHALE_SLEEF_FLOAT(acos)(x); });
  set_vector<floats>(table, operation::arc_tangent, [](V x) { return SHALE_SLEEF_FLOAT(atan)(x); });
  set_vectors<floats>(table, operation::atan2,
                      [](V y, V x) { return SHALE_SLEEF_FLOAT(atan2)(y, x); });
  set_vectors<floats>(table, operation::hypotenuse,
                      [](V x, V y) { return SHALE_SLEEF_FLOAT_HYPOT(x, y); });
}

void fill_float_hyperbolic(kernel_table& table) {
  using V = floats::vector;
  set_vector<floats>(table, operation::hyperbolic_sine, [](V x) {
    const auto vectors = [](V y) { return SHALE_SLEEF_FLOAT(sinh)(y); };
    const auto ends = [](float z) { return static_cast<float>(sinh(static_cast<double>(z))); };
    return unless_tiny(x, tiny_float, with_ends(x, 88.0f, vectors, ends));
  });
  set_vector<floats>(table, operation::hyperbolic_cosine, [](V x) {
    return with_ends(
        x, 88.0f, [](V y) { return SHALE_SLEEF_FLOAT(cosh)(y); },
        [](float y) { return static_cast<float>(cosh(static_cast<double>(y))); });
  });
  set_vector<floats>(table, operation::hyperbolic_tangent,
                     [](V x) { return hyperbolic_tangent(x); });
  set_vector<floats>(table, operation::area_sine, [](V x) {
    return unless_tiny(x, tiny_float, unless_infinite(x, SHALE_SLEEF_FLOAT(asinh)(x), [](double y) {
                         return asinh(y);
                       }));
  });
  set_vector<floats>(table, operation::area_cosine, [](V x) {
    return unless_infinite(x, SHALE_SLEEF_FLOAT(acosh)(x), [](double y) { return acosh(y); });
  });
  set_vector<floats>(table, operation::area_tangent,
                     [](V x) { return unless_tiny(x, tiny_float, SHALE_SLEEF_FLOAT(atanh)(x)); });
}

void fill_float(kernel_table& table) {
  fill_float_powers(table);
  fill_float_angles(table);
  fill_float_hyperbolic(table);
}

void fill_complex(kernel_table& table) {
  set_complex_vector<floats>(table, operation::exponential,
                             [](const complex_lanes<floats>& a, complex_lanes<floats>& result) {
                               exponential(a, result);
                             });
  set_complex_vector<doubles>(table, operation::exponential,
                              [](const complex_lanes<doubles>& a, complex_lanes<doubles>& result) {
                                exponential(a, result);
                              });
}

void fill_double(kernel_table& table) {
  using V = doubles::vector;
  set_vector<doubles>(table, operation::exponential, [](V x) { return exponential(x); });
  set_vector<doubles>(table, operation::logarithm, [](V x) { return SHALE_SLEEF_DOUBLE(log)(x); });
  set_vector<doubles>(table, operation::logarithm_2,
                      [](V x) { return SHALE_SLEEF_DOUBLE(log2)(x); });
  set_vector<doubles>(table, operation::arc_sine, [](V x) { return SHALE_SLEEF_DOUBLE(asin)(x); });
  set_vector<doubles>(table, operation::arc_cosine,
                      [](V x) { return SHALE_SLEEF_DOUBLE(acos)(x); });
  set_vector<doubles>(table, operation::arc_tangent,
                      [](V x) { return SHALE_SLEEF_DOUBLE(atan)(x); });
  set_vector<doubles>(table, operation::sine, [](V x) {
    return of_angle(x, [](V y) { return SHALE_SLEEF_DOUBLE(sin)(y); });
  });
  set_vector<doubles>(table, operation::cosine, [](V x) {
    return of_angle(x, [](V y) { return SHALE_SLEEF_DOUBLE(cos)(y); });
  });
  set_vector<doubles>(table, operation::tangent, [](V x) {
    return unless_tiny(x, tiny_double, of_angle(x, [](V y) { return SHALE_SLEEF_DOUBLE(tan)(y); }));
  });
  set_vectors<doubles>(table, operation::power, [](V x, V y) { return power(x, y); });
  set_vectors<doubles>(table, operation::atan2,
                       [](V y, V x) { return SHALE_SLEEF_DOUBLE(atan2)(y, x); });
  set_vectors<doubles>(table, operation::hypotenuse,
                       [](V x, V y) { return SHALE_SLEEF_DOUBLE_HYPOT(x, y); });
  fill_double_in_all_units(table);
}

#else

// ---- one by one --------------------------------------------------------------------------------

// For a signalling NaN, the C library's functions return NaN. Here 1 to any power, and anything to
// the power 0, is 1; and a length with an infinite side is infinite. SLEEF has the same results.
template <class T>
inline T power(T a, T b) {
  if (a == 1 || b == 0) return 1;
  if constexpr (std::is_same_v<T, float>) return powf(a, b);
  else return pow(a, b);
}
inline double length(double a, double b) {
  return __builtin_isinf(a) || __builtin_isinf(b) ? __builtin_inf() : hypot(a, b);
}

// log |gamma(a)| for every instruction set: SLEEF is exact enough for positive numbers only. These
// functions, unlike lgamma, do not store the sign of gamma(a) in a variable of the program.
inline float logarithm_of_gamma(float a) {
  int sign;
  return static_cast<float>(lgamma_r(static_cast<double>(a), &sign));
}
inline double logarithm_of_gamma(double a) {
  int sign;
#if defined(SHALE_X86_KERNELS)
  return static_cast<double>(lgammal_r(static_cast<long double>(a), &sign));
#else
  return lgamma_r(a, &sign);
#endif
}

// Computes in double if the C library's float function may be off by more than 1 ulp.
void fill_float(kernel_table& table) {
  using T = float;
  set_unary<T>(table, operation::exponential, [](T a) { return expf(a); });
  set_unary<T>(table, operation::logarithm, [](T a) { return logf(a); });
  set_unary<T>(table, operation::logarithm_2, [](T a) { return log2f(a); });
  set_unary<T>(table, operation::sine, [](T a) { return sinf(a); });
  set_unary<T>(table, operation::cosine, [](T a) { return cosf(a); });
  set_unary<T>(table, operation::arc_sine, [](T a) { return asinf(a); });
  set_unary<T>(table, operation::arc_cosine, [](T a) { return acosf(a); });
  set_unary<T>(table, operation::arc_tangent, [](T a) { return atanf(a); });
  set_binary<T>(table, operation::power, [](T a, T b) { return power(a, b); });
  set_unary<T>(table, operation::logarithm_10,
               [](T a) { return static_cast<T>(log10(static_cast<double>(a))); });
  set_unary<T>(table, operation::tangent,
               [](T a) { return static_cast<T>(tan(static_cast<double>(a))); });
  set_unary<T>(table, operation::hyperbolic_sine,
               [](T a) { return static_cast<T>(sinh(static_cast<double>(a))); });
  set_unary<T>(table, operation::hyperbolic_cosine,
               [](T a) { return static_cast<T>(cosh(static_cast<double>(a))); });
  set_unary<T>(table, operation::hyperbolic_tangent,
               [](T a) { return static_cast<T>(tanh(static_cast<double>(a))); });
  set_unary<T>(table, operation::exponential_2,
               [](T a) { return static_cast<T>(exp2(static_cast<double>(a))); });
  set_unary<T>(table, operation::exponential_minus_1,
               [](T a) { return static_cast<T>(expm1(static_cast<double>(a))); });
  set_unary<T>(table, operation::logarithm_of_1_plus,
               [](T a) { return static_cast<T>(log1p(static_cast<double>(a))); });
  set_unary<T>(table, operation::area_sine,
               [](T a) { return static_cast<T>(asinh(static_cast<double>(a))); });
  set_unary<T>(table, operation::area_cosine,
               [](T a) { return static_cast<T>(acosh(static_cast<double>(a))); });
  set_unary<T>(table, operation::area_tangent,
               [](T a) { return static_cast<T>(atanh(static_cast<double>(a))); });
  set_unary<T>(table, operation::cube_root,
               [](T a) { return static_cast<T>(cbrt(static_cast<double>(a))); });
  set_unary<T>(table, operation::error_function,
               [](T a) { return static_cast<T>(erf(static_cast<double>(a))); });
  set_unary<T>(table, operation::logarithm_of_gamma, [](T a) { return logarithm_of_gamma(a); });
  set_binary<T>(table, operation::atan2, [](T a, T b) {
    return static_cast<T>(atan2(static_cast<double>(a), static_cast<double>(b)));
  });
  set_binary<T>(table, operation::hypotenuse, [](T a, T b) {
    return static_cast<T>(length(static_cast<double>(a), static_cast<double>(b)));
  });
}

void fill_double(kernel_table& table) {
  using T = double;
  set_unary<T>(table, operation::exponential, [](T a) { return exp(a); });
  set_unary<T>(table, operation::logarithm, [](T a) { return log(a); });
  set_unary<T>(table, operation::logarithm_2, [](T a) { return log2(a); });
  set_unary<T>(table, operation::arc_sine, [](T a) { return asin(a); });
  set_unary<T>(table, operation::arc_cosine, [](T a) { return acos(a); });
  set_unary<T>(table, operation::arc_tangent, [](T a) { return atan(a); });
  set_unary<T>(table, operation::sine, [](T a) { return sin(a); });
  set_unary<T>(table, operation::cosine, [](T a) { return cos(a); });
  set_unary<T>(table, operation::tangent, [](T a) { return tan(a); });
  set_binary<T>(table, operation::power, [](T a, T b) { return power(a, b); });
  set_binary<T>(table, operation::atan2, [](T a, T b) { return atan2(a, b); });
  set_binary<T>(table, operation::hypotenuse, [](T a, T b) { return length(a, b); });
  set_unary<T>(table, operation::logarithm_of_gamma, [](T a) { return logarithm_of_gamma(a); });
#if defined(SHALE_X86_KERNELS)
  fill_double_in_all_units(table);
#else
  // These are within 3 ulp only, because every wider type is far slower here.
  set_unary<T>(table, operation::logarithm_10, [](T a) { return log10(a); });
  set_unary<T>(table, operation::hyperbolic_sine, [](T a) { return sinh(a); });
  set_unary<T>(table, operation::hyperbolic_cosine, [](T a) { return cosh(a); });
  set_unary<T>(table, operation::hyperbolic_tangent, [](T a) { return tanh(a); });
  set_unary<T>(table, operation::exponential_2, [](T a) { return exp2(a); });
  set_unary<T>(table, operation::exponential_minus_1, [](T a) { return expm1(a); });
  set_unary<T>(table, operation::logarithm_of_1_plus, [](T a) { return log1p(a); });
  set_unary<T>(table, operation::area_sine, [](T a) { return asinh(a); });
  set_unary<T>(table, operation::area_cosine, [](T a) { return acosh(a); });
  set_unary<T>(table, operation::area_tangent, [](T a) { return atanh(a); });
  set_unary<T>(table, operation::cube_root, [](T a) { return cbrt(a); });
  set_unary<T>(table, operation::error_function, [](T a) { return erf(a); });
#endif
}

#endif

}  // namespace

void fill_elementary(kernel_table& table) {
  fill_float(table);
  fill_double(table);
#if defined(SHALE_X86_KERNELS) && defined(__AVX2__)
  fill_complex(table);
#endif
}

}  // namespace shale::ops::kernels::SHALE_KERNEL_ISA
