// Expressions that repeat or join others. (Views are members of `expr`.)
//
// The evaluation reads operands that are tensors in place; `concat` and `stack` only if they have
// the dtype of the result. Any other operand, also a tile source, is first computed as a whole into
// memory of the executor's pool. It is held until everything that reads it is computed. Pages of
// mapped tensors stay resident after these functions have read them.
// Throws   invalid_argument (shapes or axes that do not fit, dtypes that do not promote, more than
//          2^63 - 1 elements), out_of_memory
#pragma once

#include <optional>
#include <span>

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// Moves the elements of each axis of `axes` by `shift` places towards higher indices; those that
/// leave at the end come in at the beginning. Without axes, the elements move in row-major order.
expr roll(const expr& a, index_t shift, const std::optional<dims>& axes = std::nullopt);

/// Repeats the whole of `a` `times[i]` times along axis i, as NumPy's tile. If one of them has
/// fewer axes, axes of length 1 or repetitions of 1 are added in front.
expr tile(const expr& a, const dims& times);

/// Repeats every position of `axis` `times` times, as NumPy's repeat.
expr repeat(const expr& a, index_t times, index_t axis);

/// Joins the parts along `axis`. Their other extents must be equal; dtypes are promoted.
expr concat(std::span<const expr> parts, index_t axis);

/// Joins parts of equal shapes along a new axis, which is axis `axis` of the result. Dtypes are
/// promoted.
expr stack(std::span<const expr> parts, index_t axis = 0);

}  // namespace shale
