// Searches in sorted elements, and the groups of equal elements in sorted rows.
#pragma once

#include "shale/executor.hpp"
#include "shale/tensor.hpp"

namespace shale::ops {

/// Stores, for each element of `values`, the number of elements of `sorted` that come before it, or,
/// with `behind_equal`, that do not come behind it, into `out` (int64). All are contiguous; `sorted`
/// and `values` have one dtype.
/// Throws   cancelled, io (an operand has lost bytes)
void search_keys(const tensor& sorted, const tensor& values, bool behind_equal, const tensor& out,
                 executor& on);

/// Whether no element comes before the one in front of it. `elements` is contiguous.
bool is_sorted(const tensor& elements);

/// The starts of the groups of equal elements (int64) in a sorted contiguous tensor of one axis; at
/// the end, its length. Every NaN is a group of its own.
/// Throws   out_of_memory, cancelled
tensor group_starts(const tensor& sorted, executor& on);

}  // namespace shale::ops
