// Elementwise functions of expressions. Operands broadcast against each other and are promoted. The
// result has the common shape and, unless a comment says otherwise, the promoted dtype.
// Throws   invalid_argument (shapes that do not broadcast, dtypes that do not promote or for which
//          the function is not defined), out_of_memory
// Cost     a node of the expression; nothing is computed before it is evaluated
#pragma once

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The quotient rounded towards minus infinity. An integer divided by zero gives 0.
expr floor_divide(const expr& a, const expr& b);

/// The same as operator%.
expr remainder(const expr& a, const expr& b);

/// Integers wrap. Integers with a negative exponent give 0, except for the bases 1 and -1.
expr pow(const expr& a, const expr& b);

/// The angle of the point (x, y), in [-pi, pi]. Not for complex; integers compute as in `sqrt`.
expr atan2(const expr& y, const expr& x);

/// sqrt(a^2 + b^2) without overflow or underflow of the squares. Not for complex; integers compute
/// as in `sqrt`.
expr hypot(const expr& a, const expr& b);

/// NaN if either is NaN.
expr minimum(const expr& a, const expr& b);
expr maximum(const expr& a, const expr& b);

expr abs(const expr& a);     ///< the magnitude; real for complex
expr square(const expr& a);  ///< integers wrap

/// -1, 0 or 1, and NaN for NaN. For complex z / |z|, and 0 for 0.
expr sign(const expr& a);

/// Integers compute in float64, those of 8 and 16 bits and bool in float32. docs/numerics.md has
/// the accuracy.
expr sqrt(const expr& a);
expr exp(const expr& a);
expr exp2(const expr& a);
expr expm1(const expr& a);  ///< exp(a) - 1, also accurate near 0
expr log(const expr& a);
expr log1p(const expr& a);  ///< log(1 + a), also accurate near 0
expr log2(const expr& a);
expr log10(const expr& a);
expr sin(const expr& a);
expr cos(const expr& a);
expr tan(const expr& a);
expr asin(const expr& a);
expr acos(const expr& a);
expr atan(const expr& a);
expr sinh(const expr& a);
expr cosh(const expr& a);
expr tanh(const expr& a);
expr asinh(const expr& a);
expr acosh(const expr& a);
expr atanh(const expr& a);
expr cbrt(const expr& a);  ///< the real cube root; not for complex

/// Converts radians to degrees, and degrees to radians. Integers compute as in `sqrt`.
expr degrees(const expr& a);
expr radians(const expr& a);

/// These return integers unchanged.
expr floor(const expr& a);
expr ceil(const expr& a);
expr trunc(const expr& a);
expr round(const expr& a);  ///< ties to even

/// The result is bool. All integers are finite. A complex number is infinite if one of its parts is,
/// even if the other part is NaN.
expr isnan(const expr& a);
expr isinf(const expr& a);
expr isfinite(const expr& a);

/// Whether an element is zero; the result is bool.
expr logical_not(const expr& a);

/// An element counts as true if it is not zero. The result is bool.
expr logical_and(const expr& a, const expr& b);
expr logical_or(const expr& a, const expr& b);
expr logical_xor(const expr& a, const expr& b);

/// Whether two elements differ by at most absolute + relative * |b|. Infinities are close to equal
/// ones only, and NaN to nothing. (`allclose` in ops.hpp compares whole tensors.)
expr isclose(const expr& a, const expr& b, double relative = 1e-5, double absolute = 1e-8);

/// min(max(a, low), high). A NaN in any operand gives NaN.
expr clip(const expr& a, const expr& low, const expr& high);

/// The elements of `a` where `condition` is true, and those of `b` elsewhere. The dtype is that of
/// `a` and `b`, promoted; the condition must be bool, and takes no part in that.
expr where(const expr& condition, const expr& a, const expr& b);

/// Converts to the dtype `to` by the rules of `convert`.
expr astype(const expr& a, dtype to);

}  // namespace shale
