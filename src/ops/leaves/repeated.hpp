// Makes expressions that repeat the elements of another one: what `tile`, `repeat` and `kron` are
// made of.
#pragma once

#include "shale/expr.hpp"

namespace shale::ops {

/// The elements of `a`, repeated. `shape` has the rank of `a`. Along each axis, position p of the
/// result has the element at p % modulus, or the element at p / divisor if the modulus is 0. An
/// operand that is not a tensor is staged.
/// Throws   std::bad_alloc
expr repeated(const expr& a, const dims& shape, const dims& modulus, const dims& divisor);

}  // namespace shale::ops
