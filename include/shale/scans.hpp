// Scans of expressions along an axis: sums, products and extrema of all elements up to each one.
//
//   tensor distance = eval(cumulative_sum(x * 0.1, 0));
//
// A scan is computed in a pass of its own. If it is the whole value of an output of the same dtype
// (`eval_into(out, cumulative_sum(x))`), that pass writes the output. Otherwise its result is held
// in memory of the executor's pool until everything that reads it is computed.
// Throws   invalid_argument (axes that do not exist, dtypes for which the scan is not defined),
//          out_of_memory
// Cost     a node of the expression; nothing is computed before it is evaluated. Then operands are
//          read once, in parallel along the scanned axis too
#pragma once

#include <optional>

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The sum, or product, of each element and of all elements before it along `axis`. Integers and
/// bool give int64 or uint64, which wrap. Floats are accumulated as by `sum` and `prod`. The result
/// has the same bits for any number of threads.
/// Shape    that of `a`; without an axis, that of `a.ravel()`, which is scanned
expr cumulative_sum(const expr& a, std::optional<index_t> axis = std::nullopt);
expr cumulative_prod(const expr& a, std::optional<index_t> axis = std::nullopt);

/// The smallest, or largest, of each element and of all elements before it along `axis`. It is NaN
/// from the first NaN on. Not for complex.
/// Shape    that of `a`; without an axis, that of `a.ravel()`, which is scanned
expr cummin(const expr& a, std::optional<index_t> axis = std::nullopt);
expr cummax(const expr& a, std::optional<index_t> axis = std::nullopt);

/// The differences of neighbours along `axis`, taken `n` times. Unsigned integers wrap, and bool
/// gives whether neighbours are unequal.
/// Shape    that of `a`, with max(0, extent - n) along `axis`
/// Throws   invalid_argument also if `n` is negative; unsupported if it is above 1000 and the result
///          has elements
expr diff(const expr& a, index_t n = 1, index_t axis = -1);

}  // namespace shale
