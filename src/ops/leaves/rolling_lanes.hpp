// Reduces the elements of every window along an axis, in time that does not grow with the windows.
//
// A window of `width` elements holds exactly one position that is a multiple of `width`, the *cut*.
// Its elements before the cut are reduced from the cut backwards, the others from the cut forwards,
// and both results are merged. Windows with the same cut share the two runs, so that each element
// is taken twice. Nothing is ever subtracted.
//
// Invariants
//   rolling.1  a result is computed from the elements of its window alone: NaN and infinities
//              affect only the windows that hold them
//   rolling.2  the order in which a window's elements are taken depends on its position along the
//              whole axis alone, not on the part of the axis that is reduced at once
// Source   M. van Herk, A fast algorithm for local minimum and maximum filters (1992); J. Gil and
//          M. Werman, Computing 2-D min, median and max filters (1993)
#pragma once

#include "ops/kernels/operations/operations.hpp"
#include "shale/tensor.hpp"

namespace shale::ops {

/// Where windows lie along an axis.
struct windows_along {
  index_t axis;
  index_t width;
  index_t first;  // the position of the first window along the whole axis
};

/// Computes a sum, mean, minimum or maximum of every window of `from` into `to`. Both are
/// contiguous; `to` has as many windows along the axis, and the result's dtype of the reducer.
/// Cost     O(elements of `from`), on the calling thread, and memory for the states of the windows
///          of up to 64 lanes, for at most `width` windows of each lane
/// Throws   std::bad_alloc, invalid_argument (another reduction, or a dtype for which it is not
///          defined)
void reduce_windows(reduction kind, const tensor& from, const tensor& to,
                    const windows_along& windows);

}  // namespace shale::ops
