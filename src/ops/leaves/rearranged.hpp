// Makes expressions of the elements of another one at rearranged positions: what `tile`, `repeat`
// and `kron` are made of.
#pragma once

#include "shale/expr.hpp"

namespace shale::ops {

/// The elements of `a`, whose rank is that of `shape`: along each axis, position p of the result has
/// the element at p % modulus if the modulus is not 0, and at p / divisor otherwise. An operand that
/// is no tensor is staged.
/// Throws   std::bad_alloc
expr rearranged(const expr& a, const dims& shape, const dims& modulus, const dims& divisor);

}  // namespace shale::ops
