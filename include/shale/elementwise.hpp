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

/// The remainder with the sign of the dividend, as C's fmod, which is exact. An integer divided by
/// zero gives 0. Not for complex.
expr fmod(const expr& a, const expr& b);

/// Integers wrap. Integers with a negative exponent give 0, except for the bases 1 and -1.
expr pow(const expr& a, const expr& b);

/// The angle of the point (x, y), in [-pi, pi]. Not for complex; integers compute as in `sqrt`.
expr atan2(const expr& y, const expr& x);

/// sqrt(a^2 + b^2) without overflow or underflow of the squares. Not for complex; integers compute
/// as in `sqrt`.
expr hypot(const expr& a, const expr& b);

/// The magnitude of `a` with the sign of `b`, also of a zero or NaN. Not for complex; integers
/// compute as in `sqrt`.
expr copysign(const expr& a, const expr& b);

/// The next number of the dtype after `a` in the direction of `b`; `b` itself if both are equal.
/// Not for complex; integers compute as in `sqrt`.
expr nextafter(const expr& a, const expr& b);

/// Moves the bits of integers by `places`, to higher or lower ones. If `places` is negative, or is
/// not less than the number of bits, all bits are moved out. A right shift of a negative number
/// repeats the sign.
expr bitwise_left_shift(const expr& a, const expr& places);
expr bitwise_right_shift(const expr& a, const expr& places);

/// NaN if either is NaN.
expr minimum(const expr& a, const expr& b);
expr maximum(const expr& a, const expr& b);

expr abs(const expr& a);     ///< the magnitude; real for complex
expr square(const expr& a);  ///< integers wrap

/// 1 / a. Integers give float64.
expr reciprocal(const expr& a);

/// The part that truncation removes: a - trunc(a). NaN for infinities; not for complex.
expr frac(const expr& a);

/// Complex numbers: the conjugate, the parts, which are real, and the angle in [-pi, pi]. A real
/// number is its own conjugate and real part, and its angle is 0 or pi, by its sign. Angles of
/// integers compute as in `sqrt`.
expr conj(const expr& a);
expr real(const expr& a);
expr imag(const expr& a);
expr angle(const expr& a);

/// -1, 0 or 1, and NaN for NaN. For complex z / |z|, and 0 for 0.
expr sign(const expr& a);

/// Integers of 32 and 64 bits are computed in float64; bool and those of 8 and 16 bits in float32.
/// docs/numerics.md has the accuracy.
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
expr cbrt(const expr& a);    ///< the real cube root; not for complex
expr rsqrt(const expr& a);   ///< 1 / sqrt(a)
expr erf(const expr& a);     ///< the error function; not for complex
expr lgamma(const expr& a);  ///< log(|gamma(a)|); infinite at 0, -1, …; not for complex

/// 1 / (1 + exp(-a)), without overflow. Not for complex; integers compute as in `sqrt`.
expr sigmoid(const expr& a);

/// log(exp(a) + exp(b)), without overflow. Not for complex; integers compute as in `sqrt` for the
/// promoted dtype.
expr logaddexp(const expr& a, const expr& b);

/// The point that lies between `a` (weight 0) and `b` (weight 1): a + weight * (b - a). For these
/// two weights it is `a` or `b` itself, whatever the other one is. The weight is real, and may be
/// any number. Integers compute as in `sqrt` for the promoted dtype, which the weight takes part
/// in.
expr lerp(const expr& a, const expr& b, const expr& weight);

/// a + value * b * c, and a + value * b / c, in one pass and rounded after each operation.
expr addcmul(const expr& a, const expr& b, const expr& c, const expr& value = 1);
expr addcdiv(const expr& a, const expr& b, const expr& c, const expr& value = 1);

/// Converts radians to degrees, and degrees to radians. Integers compute as in `sqrt`.
expr degrees(const expr& a);
expr radians(const expr& a);

/// These return integers unchanged.
expr floor(const expr& a);
expr ceil(const expr& a);
expr trunc(const expr& a);
expr round(const expr& a);  ///< ties to even

/// The result is bool. All integers are finite. A complex number is infinite if one of its parts
/// is, even if the other part is NaN.
expr isnan(const expr& a);
expr isinf(const expr& a);
expr isfinite(const expr& a);

/// Whether the sign is negative, also of -0 and of NaN; the result is bool. Not for complex.
expr signbit(const expr& a);

/// Whether an element is zero; the result is bool.
expr logical_not(const expr& a);

/// An element counts as true if it is not zero. The result is bool.
expr logical_and(const expr& a, const expr& b);
expr logical_or(const expr& a, const expr& b);
expr logical_xor(const expr& a, const expr& b);

/// Whether two elements differ by at most absolute + relative * |b|. An infinity is close only to
/// an equal one, and NaN is close to nothing. (`allclose` in ops.hpp compares whole tensors.)
expr isclose(const expr& a, const expr& b, double relative = 1e-5, double absolute = 1e-8);

/// min(max(a, low), high). A NaN in any operand gives NaN.
expr clip(const expr& a, const expr& low, const expr& high);

/// The elements of `a` where `condition` is true, and those of `b` elsewhere. The dtype is that of
/// `a` and `b`, promoted; the condition must be bool, and takes no part in that.
expr where(const expr& condition, const expr& a, const expr& b);

/// Converts to the dtype `to` by the rules of `convert`.
expr astype(const expr& a, dtype to);

}  // namespace shale
