// Expressions that repeat, turn or join others. (Other views are members of `expr`.)
//
// The evaluation reads operands that are tensors in place; `concat` and `stack` do so only for
// operands with the dtype of the result. Any other operand, also a tile source, is first computed
// as a whole into memory of the executor's pool. It is held until everything that reads it is
// computed. Pages of mapped tensors stay resident after these functions have read them.
// Throws   invalid_argument (shapes or axes that do not fit, dtypes that do not promote, more than
//          2^63 - 1 elements), out_of_memory
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// Moves the elements of each axis of `axes` by `shift` places towards higher indices; those that
/// leave at the end come in at the beginning. Without axes, the elements move in row-major order.
/// Shape    that of `a`
expr roll(const expr& a, index_t shift, const std::optional<dims>& axes = std::nullopt);

/// Turns the plane of two axes by 90 degrees, `times` times, from the first axis towards the
/// second, as NumPy's rot90. A negative number turns the other way. The result is a view.
/// Shape    that of `a`; the extents of the two axes are exchanged if `times` is odd
expr rot90(const expr& a, index_t times = 1, index_t axis_a = 0, index_t axis_b = 1);

/// The axes of a grid along which its first two arrays vary.
enum class grid_indexing : std::uint8_t {
  xy,  ///< the first along axis 1, the second along axis 0, as columns and rows of an image
  ij,  ///< each along the axis of its number
};

/// The coordinates of a grid, as NumPy's meshgrid: for each of the arrays, which have one axis or
/// none, its elements broadcast to the whole grid.
/// Shape    one axis for each array, as long as the array; dtypes as given
/// Cost     views
std::vector<expr> meshgrid(std::span<const expr> arrays,
                           grid_indexing indexing = grid_indexing::xy);

/// Repeats the whole of `a` `times[i]` times along axis i, as NumPy's tile. If `a` has fewer axes
/// than `times`, axes of length 1 are added in front. If `times` is shorter, it is extended with 1 in
/// front.
/// Shape    each extent times its repetitions
expr tile(const expr& a, const dims& times);

/// Repeats every position of `axis` `times` times, as NumPy's repeat.
/// Shape    that of `a`, with `times` times the extent along `axis`
expr repeat(const expr& a, index_t times, index_t axis);

/// Repeats every position of `axis` as often as its count says, as NumPy's repeat.
/// Shape    that of `a`, with the sum of the counts as the length of the axis. `counts`, integers
///          or bool, has one axis and a count for each position; a single count is for all of them
/// Cost     that of `take`; the counts are evaluated at once, and 8 bytes for each position of the
///          axis of the result are held. A single count costs what the function above does
/// Throws   invalid_argument also for counts of another shape or dtype, and negative ones; and as
///          `eval`
expr repeat(const expr& a, const expr& counts, index_t axis);

/// Joins the parts along `axis`. Their other extents must be equal; dtypes are promoted.
/// Shape    that of a part, with the sum of the extents along `axis`
expr concat(std::span<const expr> parts, index_t axis);

/// Joins parts of equal shapes along a new axis, which is axis `axis` of the result. Dtypes are
/// promoted.
expr stack(std::span<const expr> parts, index_t axis = 0);

}  // namespace shale
