#include "shale/elementwise.hpp"

#include <numbers>

#include "core/allocating.hpp"
#include "ops/graph/node_access.hpp"
#include "shale/creation.hpp"

namespace shale {

using namespace ops;
using detail::allocating;

expr floor_divide(const expr& a, const expr& b) { return operated(operation::floor_divide, a, b); }
expr remainder(const expr& a, const expr& b) { return a % b; }
expr pow(const expr& a, const expr& b) { return operated(operation::power, a, b); }
expr atan2(const expr& y, const expr& x) { return operated(operation::atan2, y, x); }
expr hypot(const expr& a, const expr& b) { return operated(operation::hypotenuse, a, b); }
expr minimum(const expr& a, const expr& b) { return operated(operation::minimum, a, b); }
expr maximum(const expr& a, const expr& b) { return operated(operation::maximum, a, b); }

expr abs(const expr& a) { return operated(operation::absolute, a); }
expr square(const expr& a) { return operated(operation::square, a); }
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
expr degrees(const expr& a) { return a * (180 / std::numbers::pi); }
expr radians(const expr& a) { return a * (std::numbers::pi / 180); }
expr floor(const expr& a) { return operated(operation::floor, a); }
expr ceil(const expr& a) { return operated(operation::ceiling, a); }
expr trunc(const expr& a) { return operated(operation::truncate, a); }
expr round(const expr& a) { return operated(operation::round, a); }
expr isnan(const expr& a) {
  if (kind(a.dtype()) != dtype_kind::floating && kind(a.dtype()) != dtype_kind::complex)
    return full(a.shape(), false);
  return operated(operation::is_nan, a);
}
expr isinf(const expr& a) {
  if (kind(a.dtype()) != dtype_kind::floating && kind(a.dtype()) != dtype_kind::complex)
    return full(a.shape(), false);
  return operated(operation::is_infinite, a);
}
expr isfinite(const expr& a) {
  if (kind(a.dtype()) != dtype_kind::floating && kind(a.dtype()) != dtype_kind::complex)
    return full(a.shape(), true);
  return operated(operation::is_finite, a);
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

expr isclose(const expr& a, const expr& b, double relative, double absolute) {
  return detail::allocating([&] {
    const auto in_floats = [](const expr& x) {
      const dtype_kind kind = shale::kind(x.dtype());
      const bool is_float = kind == dtype_kind::floating || kind == dtype_kind::complex;
      return is_float ? x : astype(x, dtype::float64);
    };
    const expr x = in_floats(a), y = in_floats(b);
    const expr near = abs(x - y) <= absolute + relative * abs(y);
    return (a == b) | (near & isfinite(x) & isfinite(y));
  });
}

}  // namespace shale
