// Finds elements of rows by their rank in the order, without sorting the rows where that is faster.
//
// Invariants
//   rank.1  elements are ranked by their key, then by their index: no two have one rank
//   rank.2  a long row is counted by the leading bits of its keys, and only elements whose leading
//           bits are those of a wanted rank are sorted
//   rank.3  an operand that changes between two passes over a row is refused: a pass stores a key
//           of each bin and piece only where the pass before counted one, and as many as it counted
#pragma once

#include <cstdint>
#include <vector>

#include "ops/sorting/order_keys.hpp"
#include "shale/executor.hpp"
#include "shale/tensor.hpp"

namespace shale::ops {

/// Finds the first k elements, in order, of rows that come part by part, and their indices. Each row
/// of `from` is a part of a longer row, whose number is `result_rows[r]`, or r if `result_rows` is
/// empty. The part begins at the index `first` of the longer row. `values` and `indices` have k
/// columns and a row for each longer one: the best min(k, first) elements of the parts before, which
/// this function replaces by the best ones with this part. Descending: the largest come first.
/// Throws   std::bad_alloc, cancelled, io (`from` has lost bytes)
void select_first(const tensor& from, const std::vector<index_t>& result_rows, index_t first,
                  index_t k, bool descends, const tensor& values, const tensor& indices,
                  executor& on);

/// The elements with the given ranks, of each row. Rows are not empty.
/// Shape    [number of rows, number of ranks]; the dtype of `from`. A NaN is the canonical one, and
///          a zero is +0
/// Throws   std::bad_alloc, cancelled, io (`from` has lost bytes, or it changes meanwhile)
tensor select_ranks(const tensor& from, const std::vector<index_t>& ranks, executor& on);

/// The elements of rank `rank` in each row, and their indices.
/// Throws   as select_ranks
void select_ranked(const tensor& from, index_t rank, const tensor& values, const tensor& indices,
                   executor& on);

/// The smallest of the most frequent elements of sorted rows. `order` is their argsort.
void select_modes(const tensor& sorted, const tensor& order, const tensor& values,
                  const tensor& indices, executor& on);

}  // namespace shale::ops
