#include "shale/elementwise.hpp"

#include <initializer_list>
#include <numbers>
#include <optional>
#include <string>

#include "core/allocating.hpp"
#include "core/widened.hpp"
#include "ops/graph/node_access.hpp"
#include "shale/creation.hpp"
#include "shale/error.hpp"

namespace shale {

using namespace ops;
using detail::allocating;

expr floor_divide(const expr& a, const expr& b) { return operated(operation::floor_divide, a, b); }
expr remainder(const expr& a, const expr& b) { return a % b; }
expr fmod(const expr& a, const expr& b) { return operated(operation::truncated_remainder, a, b); }
expr pow(const expr& a, const expr& b) { return operated(operation::power, a, b); }
expr atan2(const expr& y, const expr& x) { return operated(operation::atan2, y, x); }
expr hypot(const expr& a, const expr& b) { return operated(operation::hypotenuse, a, b); }
expr copysign(const expr& a, const expr& b) { return operated(operation::copy_sign, a, b); }
expr nextafter(const expr& a, const expr& b) { return operated(operation::next_after, a, b); }
expr bitwise_left_shift(const expr& a, const expr& places) {
  return operated(operation::shift_left, a, places);
}
expr bitwise_right_shift(const expr& a, const expr& places) {
  return operated(operation::shift_right, a, places);
}
expr minimum(const expr& a, const expr& b) { return operated(operation::minimum, a, b); }
expr maximum(const expr& a, const expr& b) { return operated(operation::maximum, a, b); }

expr abs(const expr& a) { return operated(operation::absolute, a); }
expr square(const expr& a) { return operated(operation::square, a); }
expr reciprocal(const expr& a) { return 1 / a; }
expr frac(const expr& a) { return a - trunc(a); }
expr sign(const expr& a) { return operated(operation::sign, a); }
expr sqrt(const expr& a) { return operated(operation::square_root, a); }
expr exp(const expr& a) { return operated(operation::exponential, a); }
expr exp2(const expr& a) { return operated(operation::exponential_2, a); }
expr expm1(const expr& a) { return operated(operation::exponential_minus_1, a); }
expr log(const expr& a) { return operated(operation::logarithm, a); }
expr log1p(const expr& a) { return operated(operation::logarithm_of_1_plus, a); }
expr log2(const expr& a) { return operated(operation::logarithm_2, a); }
expr log10(const expr& a) { return operated(operation::logarithm_10, a); }
expr sin(const expr& a) { return operated(operation::sine, a); }
expr cos(const expr& a) { return operated(operation::cosine, a); }
expr tan(const expr& a) { return operated(operation::tangent, a); }
expr asin(const expr& a) { return operated(operation::arc_sine, a); }
expr acos(const expr& a) { return operated(operation::arc_cosine, a); }
expr atan(const expr& a) { return operated(operation::arc_tangent, a); }
expr sinh(const expr& a) { return operated(operation::hyperbolic_sine, a); }
expr cosh(const expr& a) { return operated(operation::hyperbolic_cosine, a); }
expr tanh(const expr& a) { return operated(operation::hyperbolic_tangent, a); }
expr asinh(const expr& a) { return operated(operation::area_sine, a); }
expr acosh(const expr& a) { return operated(operation::area_cosine, a); }
expr atanh(const expr& a) { return operated(operation::area_tangent, a); }
expr cbrt(const expr& a) { return operated(operation::cube_root, a); }
expr rsqrt(const expr& a) { return 1 / sqrt(a); }
expr erf(const expr& a) { return operated(operation::error_function, a); }
expr lgamma(const expr& a) { return operated(operation::logarithm_of_gamma, a); }
expr degrees(const expr& a) { return a * (180 / std::numbers::pi); }
expr radians(const expr& a) { return a * (std::numbers::pi / 180); }
expr floor(const expr& a) { return operated(operation::floor, a); }
expr ceil(const expr& a) { return operated(operation::ceiling, a); }
expr trunc(const expr& a) { return operated(operation::truncate, a); }
expr round(const expr& a) { return operated(operation::round, a); }
expr isnan(const expr& a) {
  if (!is_inexact(a.dtype())) return full(a.shape(), false);
  return operated(operation::is_nan, a);
}
expr isinf(const expr& a) {
  if (!is_inexact(a.dtype())) return full(a.shape(), false);
  return operated(operation::is_infinite, a);
}
expr isfinite(const expr& a) {
  if (!is_inexact(a.dtype())) return full(a.shape(), true);
  return operated(operation::is_finite, a);
}
expr signbit(const expr& a) {
  if (is_inexact(a.dtype())) return operated(operation::sign_bit, a);
  if (kind(a.dtype()) == dtype_kind::signed_integer) return a < 0;
  return full(a.shape(), false);
}
expr logical_not(const expr& a) { return operated(operation::logical_not, a); }
expr logical_and(const expr& a, const expr& b) {
  return astype(a, dtype::boolean) & astype(b, dtype::boolean);
}
expr logical_or(const expr& a, const expr& b) {
  return astype(a, dtype::boolean) | astype(b, dtype::boolean);
}
expr logical_xor(const expr& a, const expr& b) {
  return astype(a, dtype::boolean) ^ astype(b, dtype::boolean);
}
expr clip(const expr& a, const expr& low, const expr& high) {
  return minimum(maximum(a, low), high);
}
expr where(const expr& condition, const expr& a, const expr& b) {
  return allocating([&] {
    return expr_of(make_operation(operation::select, {node_of(condition), node_of(a), node_of(b)}));
  });
}
expr astype(const expr& a, dtype to) {
  return allocating([&] { return expr_of(make_cast(node_of(a), to)); });
}

// ---- functions that are made of others ---------------------------------------------------------

namespace {

bool has_complex_numbers(const expr& a) { return kind(a.dtype()) == dtype_kind::complex; }

void refuse_complex(const expr& a, const char* function) {
  if (has_complex_numbers(a))
    throw error(
        errc::invalid_argument,
        std::string("'") + function + "' is not defined for " + std::string(name(a.dtype())),
        {"it is defined for real numbers; abs, real and imag make them"});
}

// Operands of float16 and bfloat16 are computed in float32, and the result is rounded once.
bool is_small(const expr& a) { return detail::widened(a.dtype()) != a.dtype(); }
expr widened(const expr& a) { return is_small(a) ? astype(a, dtype::float32) : a; }

// Floating and complex operands keep their dtype; integers become floats.
expr in_fractions(const expr& a) { return is_inexact(a.dtype()) ? a : a * 1.0; }

// The dtype of fractional results: the dtype of `sqrt` for the promoted dtype of the operands.
// Numbers without a dtype do not take part in the promotion.
dtype fraction_dtype(std::initializer_list<const expr*> operands) {
  std::optional<dtype> type;
  for (const expr* operand : operands)
    if (!weak_number(*operand)) type = type ? promote(*type, operand->dtype()) : operand->dtype();
  return type ? in_fractions(astype(expr(0), *type)).dtype() : dtype::float64;
}

// The operand, converted to `type`. An integer without a dtype becomes a float, and still has no
// dtype.
expr in_fractions(const expr& a, dtype type) {
  return weak_number(a) ? in_fractions(a) : astype(a, type);
}

}  // namespace

expr conj(const expr& a) { return has_complex_numbers(a) ? operated(operation::conjugate, a) : a; }
expr real(const expr& a) { return has_complex_numbers(a) ? operated(operation::real_part, a) : a; }
expr imag(const expr& a) {
  return has_complex_numbers(a) ? operated(operation::imaginary_part, a) : zeros_like(a);
}
expr angle(const expr& a) {
  return has_complex_numbers(a) ? atan2(imag(a), real(a)) : atan2(0.0, a);
}

expr sigmoid(const expr& a) {
  return allocating([&] {
    refuse_complex(a, "sigmoid");
    const expr x = in_fractions(widened(a));
    const expr power = exp(-abs(x));
    const expr result = where(x < 0, power, 1.0) / (1 + power);
    return is_small(a) ? astype(result, a.dtype()) : result;
  });
}

expr logaddexp(const expr& a, const expr& b) {
  return allocating([&] {
    refuse_complex(a, "logaddexp");
    refuse_complex(b, "logaddexp");
    const dtype type = fraction_dtype({&a, &b}), compute = detail::widened(type);
    const expr x = in_fractions(a, compute), y = in_fractions(b, compute);
    // The difference of equal infinities is NaN, so it is not used for equal operands.
    const expr apart = where(x == y, 0.0, abs(x - y));
    const expr result = maximum(x, y) + log1p(exp(-apart));
    return compute == type ? result : astype(result, type);
  });
}

expr lerp(const expr& a, const expr& b, const expr& weight) {
  return allocating([&] {
    refuse_complex(weight, "lerp");
    const dtype type = fraction_dtype({&a, &b, &weight});
    const expr first = in_fractions(a, type), last = in_fractions(b, type);
    const expr part = in_fractions(weight, abs(astype(expr(0), type)).dtype());
    const expr way = last - first, rest = 1 - part;
    const expr on_the_way = where(part < 0.5, first + part * way, last - rest * way);
    // `way` may overflow between finite points, and a multiple of an infinite `way` may be NaN.
    const expr mixed = rest * first + part * last;
    const expr between = where(isfinite(way), on_the_way, mixed);
    return where(part == 0, first, where(part == 1, last, between));
  });
}
expr addcmul(const expr& a, const expr& b, const expr& c, const expr& value) {
  return a + value * b * c;
}
expr addcdiv(const expr& a, const expr& b, const expr& c, const expr& value) {
  return a + value * b / c;
}

expr isclose(const expr& a, const expr& b, double relative, double absolute) {
  return detail::allocating([&] {
    const auto in_floats = [](const expr& x) {
      return is_inexact(x.dtype()) ? x : astype(x, dtype::float64);
    };
    const expr x = in_floats(a), y = in_floats(b);
    const expr near = abs(x - y) <= absolute + relative * abs(y);
    return (a == b) | (near & isfinite(x) & isfinite(y));
  });
}

}  // namespace shale
