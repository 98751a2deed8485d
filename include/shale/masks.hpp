// Elements for which a mask is true.
//
//   tensor outliers = masked_select(x, abs(x - mean(x)) > 3 * stddev(x));
//
// A mask is an expression whose elements count as true if they are not zero. The number of true
// elements decides the shape of a result, so these functions evaluate at once, on the executor of
// the calling thread, except masked_fill, which makes an expression. Results are new tensors in
// memory of the executor's pool. Their elements are in row-major order.
//
// If a mask and the elements need more than a quarter of the budget together, they are evaluated in
// slabs: the mask twice, once to count and once to select. Values that must be computed as a whole
// before any slab, such as the mean above, are computed once for the mask and once for the
// elements, and held meanwhile. Operands that lie in memory as contiguous tensors are read in
// place. If few elements of a chunked array are selected (their coordinates need no more memory
// than its elements, and no more than a quarter of the budget), only chunks in which they lie are
// decoded, each once.
// Throws   invalid_argument (shapes that do not broadcast, rank 0 where axes are needed),
//          out_of_memory (a result exceeds the pool's limit, or the system has no memory), io (a
//          mask in shared memory, or from a file, had another number of true elements when it was
//          used than when it was counted), and as `eval`
// Threads  as `eval`
#pragma once

#include <vector>

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The elements of `a` for which `mask` is true, as NumPy's a[mask]. Both are broadcast.
/// Shape    [number of true elements]
tensor masked_select(const expr& a, const expr& mask);

/// The coordinates of the elements that are not zero: for each axis an int64 tensor.
/// Shape    [number of them] each; `a` has at least one axis
std::vector<tensor> nonzero(const expr& a);

/// The same coordinates in the rows of one matrix, as gather_nd takes them.
/// Shape    [number of them, rank of `a`]
tensor argwhere(const expr& a);

/// `a` with `value` where `mask` is true. It has the dtype of `a`, and all three are broadcast.
/// Throws   invalid_argument also for a number of C++ that the dtype of `a` cannot hold, as `full`;
///          tensors are converted as by `astype`
expr masked_fill(const expr& a, const expr& mask, const expr& value);

/// Stores the elements of `values`, in row-major order, one after the other where `mask` is true.
/// `mask` is broadcast to the shape of `out`. Elements that are left over are not used. The mask,
/// and as many values as it needs, are held whole.
/// Throws   invalid_argument also if `values` has too few elements, or if elements of `out` share
///          bytes; access_denied (`out` is read-only): nothing is stored then. After cancelled or
///          io, some elements may be stored
/// Threads  no other thread may use the elements of `out` meanwhile
void masked_scatter(const tensor& out, const expr& mask, const expr& values);

}  // namespace shale
