// Rolling reductions of expressions: sums, means and extrema of the windows along an axis.
//
//   expr smooth = rolling_mean(x, 30, 0);  // of every 30 days in a row
//   expr anomaly = expr(x).narrow(0, 29, x.shape()[0] - 29) - smooth;
//
// The result at position p is that of the elements at p to p + window - 1. So every result has a
// whole window, and there are window - 1 results fewer than elements (where pandas writes NaN). It
// is the reduction of `a.unfold(axis, window, 1)` along its last axis, but each element is taken
// only twice, however long the window is.
//
// Windows are independent of each other: NaN, infinities and rounding errors of an element affect
// only the windows that hold it. The bits are the same for any number of threads, any budget, any
// layout of the operand and any CPU.
//
// A rolling reduction is computed in a pass of its own, part by part, from parts of the operand. So
// the operand may be larger than memory: a mapped file, a tile source, or an expression of them.
// Two kinds of expression are first computed as a whole into memory of the executor's pool: those
// of more than 2,000 nodes, and those that read a lazy factor of a lazy factor (tall_qr.hpp). If
// the reduction is the whole value of an output of the same dtype that shares no bytes with the
// operand (`eval_into(out, rolling_sum(x, 7))`), its pass writes the output. Otherwise its result
// is held in memory of the executor's pool until everything that reads it is computed.
// Shape    that of `a`, with extent - window + 1 along `axis`
// Cost     a node of the expression; nothing is computed before it is evaluated. Then elements are
//          read at most twice, in parallel. Each thread holds up to 2^19 results and twice as many
//          elements of the operand; more if windows are longer than 2^14 elements, or for large
//          tiles of sources (docs/caveats.md)
// Throws   invalid_argument (an axis that does not exist, a window below 1 or above the extent of
//          the axis, dtypes for which the reduction is not defined), out_of_memory
#pragma once

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The sum of every window. Integers and bool give int64 or uint64, which wrap. Floats are
/// accumulated as by `sum`.
expr rolling_sum(const expr& a, index_t window, index_t axis = -1);

/// The arithmetic mean of every window. Integers give float64.
expr rolling_mean(const expr& a, index_t window, index_t axis = -1);

/// The smallest, or largest, element of every window. NaN if any of them is NaN. Not for complex.
expr rolling_min(const expr& a, index_t window, index_t axis = -1);
expr rolling_max(const expr& a, index_t window, index_t axis = -1);

}  // namespace shale
