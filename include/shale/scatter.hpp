// Stores at positions that integers name: the opposite of take.hpp.
//
//   scatter_add(c, 0, indices, a);   // c[indices[i]] += a[i]
//
// Indices may have any integer dtype. A negative index counts from the end of its axis. All indices
// are checked before anything is stored. If several values have the same target, they are stored,
// or added, in the order of their positions along the axis: the result is defined, and has the same
// bits for any number of threads. Values are converted to the dtype of `out`.
//
// These functions evaluate at once, on the executor of the calling thread. Indices are held as
// int64 and values in the dtype of `out`, as a whole, in memory of the executor's pool. Tensors in
// memory that have that dtype already are read in place.
// `out` is any tensor, also a view or a mapped one, whose elements do not share bytes. It may
// overlap the operands, which are copied then.
// Throws   invalid_argument (shapes or axes that do not fit, indices of other dtypes or out of
//          range), access_denied (`out` is read-only), out_of_memory: nothing is stored then. Also
//          cancelled and io: some elements may be stored then. An index in shared memory that
//          another process moves out of its range after the check is an error too (io)
// Cost     one pass over the indices to check them, and one over indices and values to store. Lanes
//          are worked through in parallel. If there are too few for all threads, each long lane is
//          divided by ranges of its targets, and each of its threads reads all its indices.
//          Progress is reported by lanes; a cancellation also ends a long lane
// Threads  no other thread may use the elements of `out` meanwhile
#pragma once

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// out[i][index[i][j]] = values[i][j], if `axis` is the last one: each value replaces the element
/// at its own position, but with the index in place of the coordinate along `axis`. Along the other
/// axes, `indices` may be shorter than `out`. `values` is broadcast to the shape of `indices`.
void scatter(const tensor& out, index_t axis, const expr& indices, const expr& values);

/// The same, but adds to the elements. Integers wrap; for bool, adding is "or". Every sum is
/// rounded to the dtype of `out`.
void scatter_add(const tensor& out, index_t axis, const expr& indices, const expr& values);

/// Stores values[…, k, …] in place of the whole slice `indices[k]` of `axis`. `indices` has one
/// axis. `values` is broadcast to the shape of `out` with the length of `indices` along `axis`.
void index_copy(const tensor& out, index_t axis, const expr& indices, const expr& values);

/// The same, but adds to the slices.
void index_add(const tensor& out, index_t axis, const expr& indices, const expr& values);

/// Stores one number in the slices `indices` of `axis`.
/// Throws   invalid_argument also for a number that the dtype of `out` cannot hold, as `full`
void index_fill(const tensor& out, index_t axis, const expr& indices, const scalar& value);

/// Stores `values`, broadcast to the shape of `indices`, where the indices count the elements of
/// `out` in row-major order. The indices are used in row-major order too.
/// Cost     a view that has no single stride over all elements is copied, and copied back
void put(const tensor& out, const expr& indices, const expr& values);

}  // namespace shale
