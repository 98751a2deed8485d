#include "shale/ops.hpp"

#include "shale/creation.hpp"
#include "shale/elementwise.hpp"
#include "shale/evaluate.hpp"
#include "shale/reductions.hpp"

namespace shale {

void fill(const tensor& out, const scalar& value) {
  eval_into(out, full(out.shape(), value, out.dtype()));
}

void copy(const tensor& to, const expr& from) { eval_into(to, from); }

bool array_equal(const expr& a, const expr& b) {
  if (!(a.shape() == b.shape())) return false;
  return eval(all(a == b)).item() == scalar(true);
}

bool allclose(const expr& a, const expr& b, const tolerance& within) {
  const auto wide = [](const expr& x) {
    const bool is_complex = kind(x.dtype()) == dtype_kind::complex;
    return astype(x, is_complex ? dtype::complex128 : dtype::float64);
  };
  const expr x = wide(a), y = wide(b);
  // A difference with an infinity is infinite or NaN, so an infinity is close only to an equal one.
  const expr near = isfinite(y) & (abs(x - y) <= within.absolute + within.relative * abs(y));
  const expr close = near | (x == y);
  const expr wanted = within.nan_equals_nan ? close | (isnan(x) & isnan(y)) : close;
  return eval(all(wanted)).item() == scalar(true);
}

}  // namespace shale
