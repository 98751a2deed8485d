// The order of elements along an axis.
//
//   tensor ordered = sort(x);                                  // along the last axis
//   tensor order = argsort(x, 0, descending::yes);             // int64: where the elements come from
//   tensor same = eval(take_along_axis(x, argsort(x), -1));    // the same as `ordered`
//
// One order is used by all functions of this header: -0 and +0 are equal, and NaN is larger than
// every number and equal to NaN. So NaN comes last, as in NumPy, and first if the order descends.
// false is less than true. Complex numbers have no order. Sorting is always stable: equal elements
// stay in the order in which they were, also if the order descends. So a result has the same bits,
// down to the payloads of NaN, for any number of threads.
//
// These functions evaluate at once, on the executor of the calling thread. The operand may be any
// expression, also a tile source or a mapped file. Results are new row-major tensors in memory of
// the executor's pool. The operand is held whole, in memory of the pool unless it is a tensor in
// memory whose elements are in row-major order with the axis as the last one. Along another axis,
// results are sorted along the last one and then copied into their order; the operand is released
// before that.
// Throws   invalid_argument (an axis that does not exist, complex elements), out_of_memory, cancelled,
//          io (another process changes an operand in shared memory while it is sorted, and this is
//          noticed), and as `eval`
// Cost     O(n log n) along an axis of length n. A long lane is sorted in parallel, in pieces that are
//          merged; short ones are shared out among the threads
// Threads  as `eval`
// Source   Blacher, Giesen, Sanders and Wassenberg: Vectorized and performance-portable Quicksort
//          (2022), by the library Highway; Green, Odeh and Birk: Merge Path (2014)
#pragma once

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// Whether the largest elements come first.
enum class descending : bool { no, yes };

/// The elements in order along `axis`.
/// Shape    that of `x`, which has at least one axis; its dtype
/// Cost     the memory of one lane for a lane that is sorted in pieces, beside the operand and the
///          result; along another axis than the last, that of two results, but then without the
///          operand
tensor sort(const expr& x, index_t axis = -1, descending order = descending::no);

/// For each position of the sorted lane, the index along `axis` of the element that belongs there.
/// Shape    that of `x`, which has at least one axis; int64
/// Cost     the memory of one more result for each lane that is sorted at a time; elements of 8 bytes
///          take that of four. Along another axis than the last, as sort
tensor argsort(const expr& x, index_t axis = -1, descending order = descending::no);

}  // namespace shale
