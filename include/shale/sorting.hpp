// The order of elements along an axis.
//
//   tensor ordered = sort(x);                                  // along the last axis
//   tensor order = argsort(x, 0, descending::yes);             // int64: where elements come from
//   tensor same = eval(take_along_axis(x, argsort(x), -1));    // the same as `ordered`
//
// One order is used by all functions of this header: -0 and +0 are equal, and NaN is larger than
// every number and equal to NaN. So NaN comes last, as in NumPy, and first if the order descends.
// false is less than true. Complex numbers have no order. Sorting is always stable: equal elements
// keep their order, also if the order descends. So a result has the same bits, down to the payloads
// of NaN, for any number of threads.
//
// These functions evaluate at once, on the executor of the calling thread. The operand may be any
// expression, also a tile source or a mapped file.
//
// In memory: results are new row-major tensors in memory of the executor's pool. The operand is
// held whole, in memory of the pool unless it is a tensor in memory whose elements are in row-major
// order with the axis as the last one. Along another axis, results are sorted along the last one
// and then copied into their order; the operand is released before that.
//
// Larger than memory: if the operand is not a tensor in memory, and sorting it in memory takes more
// than the executor's budget (3 times its bytes for `sort`, 18 to 56 bytes for each element for
// `argsort`), it is sorted slab by slab into a file without a name, in the folder that the variable
// TMPDIR names or in /var/tmp. The result is a writable mapping of that file. Its lanes lie one
// behind the other, so along another axis than the last it is a view that is not row-major. If a
// lane is longer than a slab, its slabs are written to a second file as sorted runs, which are
// merged. So the operand is read once and the result is written once. If lanes do not fit in a
// slab, the runs are written once and read once, too. Copying the result elsewhere costs one more
// read and one more write.
// Half of the budget is held. Values that must be computed as a whole before any slab, such as a
// mean, are computed once, and held meanwhile.
// Throws   invalid_argument (an axis that does not exist, complex elements), out_of_memory,
//          cancelled, io (another process changes an operand in shared memory while it is sorted,
//          and this is noticed), and as `eval`. With files also io (the device failed; if it fails
//          later, calls that read the result throw io), out_of_space (at once if there is certainly
//          too little space), not_found, access_denied or unsupported (TMPDIR names no folder, one
//          that may not be written, or one on a network file system), and out_of_memory if the
//          budget is too small to merge the runs of so long a lane: `sort` needs at most 80 times
//          the square root of the lane's bytes (8 MB for 10 GB), `argsort` 510 times that of its
//          elements
// Cost     O(n log n) along an axis of length n. A long lane is sorted in parallel, in pieces that
//          are merged; short ones are shared out among the threads. With files, a tile of a source
//          is decoded for each slab that it meets
// Threads  as `eval`
// Lifetime the space of the file is free when the last tensor of it is destroyed, or the process
//          ends
// Source   Blacher, Giesen, Sanders and Wassenberg: Vectorized and performance-portable Quicksort
//          (2022), by the library Highway; Green, Odeh and Birk: Merge Path (2014)
#pragma once

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// Whether the largest elements come first.
enum class descending : bool { no, yes };

/// The elements in order along `axis`.
/// Shape    that of `x`, which has at least one axis; its dtype
/// Cost     besides the operand and the result, the memory of one lane if a lane is sorted in
///          pieces. Along another axis than the last, the result is then copied: two results are
///          held, but no longer the operand
tensor sort(const expr& x, index_t axis = -1, descending order = descending::no);

/// For each position of the sorted lane, the index along `axis` of the element that belongs there.
/// Shape    that of `x`, which has at least one axis; int64
/// Cost     besides the operand and the result, for each lane that is sorted at a time, 8 bytes for
///          each of its elements, or 32 if elements have 8 bytes. Along another axis than the last,
///          as sort
tensor argsort(const expr& x, index_t axis = -1, descending order = descending::no);

}  // namespace shale
