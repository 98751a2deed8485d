// Sorts the rows of a matrix, or the indices of their elements.
//
// Invariants
//   sort.1  a row's result depends on its elements alone: pieces of it that threads sort are merged
//           into the one sorted sequence of keys, or of pairs of a key and an index
//   sort.2  pairs differ in their indices, so their order is stable whatever sorts them
//   sort.3  keys lose the payloads of NaN and the signs of zeros; these are stored again in the order
//           of the operand, which is the stable one
//   sort.4  an operand that changes between two passes over a row is refused: NaNs and zeros are
//           stored only where the sorted row has such elements, and as many as were counted
#pragma once

#include "ops/sorting/order_keys.hpp"
#include "shale/executor.hpp"
#include "shale/tensor.hpp"

namespace shale::ops {

/// Throws   invalid_argument if elements of that dtype have no order, naming `function`
void require_order(dtype type, const char* function);

/// Sorts along the last axis. Both tensors are contiguous, of one shape and dtype, and do not
/// overlap.
/// Throws   out_of_memory, cancelled, io (`from` has lost bytes, or it changes meanwhile)
void sort_rows(const tensor& from, const tensor& out, bool descends, executor& on);

/// Stores the indices that sort the rows into `out`, which has dtype int64.
/// Throws   out_of_memory, cancelled, io (`from` has lost bytes)
void argsort_rows(const tensor& from, const tensor& out, bool descends, executor& on);

}  // namespace shale::ops
