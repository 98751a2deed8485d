// The elements of an expression at positions that integers name.
//
//   tensor some = eval(take(a, indices, 0));              // some rows of a matrix
//   tensor sorted = eval(take_along_axis(x, indices));   // every row in an order of its own
//
// Indices may have any integer dtype. A negative index counts from the end of its axis. Operands
// that are tensors are read in place. From a chunked array or another tile source, only the tiles
// in which the elements lie are loaded, each once and in the order of the grid. The result is held
// as a whole. If a quarter of the budget has no room for the elements (56 bytes each, without axes
// that no index depends on), they are read in parts, each of which loads its tiles once. Any other
// operand, and a tile source that has fewer elements than the result, is first computed as a whole
// into memory of the executor's pool and held until everything that reads it is computed. Pages of
// mapped tensors stay resident after these functions have read them.
// Throws   invalid_argument (shapes or axes that do not fit, indices of other dtypes, more than
//          2^63 - 1 elements), out_of_memory. An index out of range makes the evaluation throw
//          invalid_argument; only indices that the evaluation reads are checked
// Cost     a node of the expression; then each element is read by one access to the operand, and
//          elements along a last axis without indices are copied as runs
#pragma once

#include <optional>

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The elements of `a` at the positions `indices` along `axis`, as NumPy's take.
/// Shape    that of `a`, with the axis replaced by the axes of `indices`; without an axis, that of
///          `indices`, which count the elements of `a.ravel()`
expr take(const expr& a, const expr& indices, std::optional<index_t> axis = std::nullopt);

/// For each position of `indices`, the element of `a` at the same position, but with the index in
/// place of the coordinate along `axis`, as NumPy's take_along_axis. All other axes are broadcast.
expr take_along_axis(const expr& a, const expr& indices, index_t axis = -1);

/// As take_along_axis, but nothing is broadcast: `indices` may be shorter than `a` along the other
/// axes, as in PyTorch's gather.
/// Shape    that of `indices`
expr gather(const expr& a, index_t axis, const expr& indices);

/// The elements, or sub-arrays, of `a` at coordinates. The last axis of `indices` holds the first
/// `indices.shape(-1)` coordinates, as in the results of `argwhere`.
/// Shape    that of `indices` without its last axis, then that of `a` without its first
///          `indices.shape(-1)` axes
expr gather_nd(const expr& a, const expr& indices);

}  // namespace shale
