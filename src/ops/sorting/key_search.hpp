// Searches in sorted elements, and the groups of equal elements in sorted rows.
#pragma once

#include "shale/executor.hpp"
#include "shale/tensor.hpp"

namespace shale::ops {

/// For each element of `values`, counts the elements of `sorted` that come before it, and with
/// `behind_equal` also those that are equal to it. Stores the counts into `out` (int64). All
/// tensors are contiguous; `sorted` and `values` have one dtype.
/// Throws   cancelled, io (an operand has lost bytes)
void search_keys(const tensor& sorted, const tensor& values, bool behind_equal, const tensor& out,
                 executor& on);

/// Whether the elements are in order. `elements` is contiguous.
bool is_sorted(const tensor& elements);

/// The starts of the groups of equal elements (int64) in a sorted contiguous tensor of one axis; at
/// the end, its length. Every NaN is a group of its own.
/// Throws   out_of_memory, cancelled
tensor group_starts(const tensor& sorted, executor& on);

}  // namespace shale::ops
