// Finds elements of rows by their rank in the order, without sorting the rows where that is faster.
//
// Invariants
//   rank.1  elements are ranked by their key, then by their index: no two have one rank
//   rank.2  a long row is counted by the leading bits of its keys, and only elements whose leading
//           bits are those of a wanted rank are sorted
//   rank.3  an operand that changes between two passes over a row is refused. For each bin and
//           piece, the second pass stores exactly as many keys as the first pass counted
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ops/sorting/order_keys.hpp"
#include "shale/executor.hpp"
#include "shale/tensor.hpp"

namespace shale::ops {

/// Finds the first k elements of rows that come part by part, and their indices. Each row r of
/// `from` is a part of a longer row, whose number is `result_rows[r]`, or r if `result_rows` is
/// empty. The part begins at the index `first` of the longer row.
///
/// `values` and `indices` have k columns, and one row for each longer row. Before the call they
/// hold the best min(k, first) elements of the parts so far, in order. This function replaces them
/// by the best elements of these parts and the new one. Descending: the largest come first.
/// Throws   std::bad_alloc, cancelled, io (`from` has lost bytes)
void select_first(const tensor& from, const std::vector<index_t>& result_rows, index_t first,
                  index_t k, bool descends, const tensor& values, const tensor& indices,
                  executor& on);

/// The ranks that are wanted of each row: the same number of every row.
struct wanted_ranks {
  index_t count;

  /// Writes the `count` ranks of a row. It is called by several threads at once.
  std::function<void(index_t row, index_t* ranks)> of_row;
};

/// The elements with the wanted ranks, of each row. Rows are not empty.
/// Shape    [number of rows, number of ranks]; the dtype of `from`. A NaN is the canonical one, and
///          a zero is +0
/// Throws   std::bad_alloc, cancelled, io (`from` has lost bytes, or it changes meanwhile)
tensor select_ranks(const tensor& from, const wanted_ranks& ranks, executor& on);

/// The elements of rank `rank` in each row, and their indices.
/// Throws   as select_ranks
void select_ranked(const tensor& from, index_t rank, const tensor& values, const tensor& indices,
                   executor& on);

/// The smallest of the most frequent elements of sorted rows. `order` is their argsort.
void select_modes(const tensor& sorted, const tensor& order, const tensor& values,
                  const tensor& indices, executor& on);

}  // namespace shale::ops
