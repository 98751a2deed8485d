// The largest and smallest elements, medians and quantiles along an axis.
//
//   auto [values, indices] = topk(x, 10);               // the ten largest, and where they are
//   tensor middle = median(x, {1});                     // of each row
//   tensor limits = quantile(x, {0.02, 0.98});          // of all elements
//
// The order is that of sorting.hpp: NaN is larger than every number, and -0 and +0 are equal. Among
// equal elements the one with the lowest index comes first. So results do not depend on the number
// of threads. Complex numbers have no order.
//
// These functions evaluate at once, on the executor of the calling thread. The operand may be any
// expression, also a tile source or a mapped file. Results are new row-major tensors in memory of
// the executor's pool. `mode` holds the operand whole. The other functions do so if it fits in a
// quarter of the budget. It is then held in memory of the pool, unless it is a tensor in memory
// whose elements are in row-major order with the axis as the last one.
// Throws   invalid_argument (an axis that does not exist, or has length 0 while the result has
//          elements; complex elements; a rank or a quantile that does not exist), out_of_memory,
//          cancelled, io (as `sort`), and as `eval`
// Threads  as `eval`
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// Elements, and their indices along the axis (int64).
struct ranked_elements {
  tensor values;
  tensor indices;
};

/// Which end of the order is wanted.
enum class largest : bool { no, yes };

/// The `k` largest, or smallest, elements along `axis`, the most extreme one first. As in PyTorch,
/// NaN counts as the largest.
/// Shape    that of `x`, with length `k` along the axis; 0 <= k <= its length
/// Cost     one pass. If the operand is not held in memory and exceeds a quarter of the budget, it
///          is evaluated in slabs, each once. Values that must be computed as a whole before any
///          slab, such as a scan or a mean, are computed once, and held meanwhile. Along another
///          axis than the last, takes the memory of two results
ranked_elements topk(const expr& x, index_t k, index_t axis = -1, largest end = largest::yes);

/// The k-th smallest element along `axis`; 1 <= k <= its length, as in PyTorch.
/// Shape    that of `x` without the axis
/// Cost     a long lane is read twice, and only the elements near the k-th are sorted. If the
///          operand is not a tensor in memory and exceeds a quarter of the budget, it is evaluated
///          in slabs: once if lanes fit in a slab, else three times, and up to eight times if very
///          many elements lie close to the k-th. Values that must be computed as a whole before any
///          slab are computed once
ranked_elements kthvalue(const expr& x, index_t k, index_t axis = -1);

/// The smallest of the most frequent elements along `axis`, and where it occurs first. NaNs count
/// as one value.
/// Shape    that of `x` without the axis
/// Cost     a sort
ranked_elements mode(const expr& x, index_t axis = -1);

/// The middle element, or the mean of the two middle ones, as NumPy's. NaN if any element is NaN.
/// (PyTorch's median is the lower one of the two: kthvalue(x, (n + 1) / 2).)
/// Shape    that of `x` without the axis; without an axis, rank 0. Floats keep their dtype,
///          integers and bool give float64
/// Cost     as kthvalue; if lanes do not fit in a slab, one evaluation less
/// Throws   invalid_argument also for float8
tensor median(const expr& x, std::optional<index_t> axis = std::nullopt);

/// The value of a quantile that lies between two elements.
enum class quantile_method : std::uint8_t {
  linear,    ///< on the line between the two
  lower,     ///< the smaller element
  higher,    ///< the larger element
  midpoint,  ///< their mean
  nearest,   ///< the closer element; if both are equally close, the one with the even rank
};

/// The element of rank q (n - 1), counted from 0, of n elements along `axis`; 0 <= q <= 1. NaN if
/// any element is NaN. It is computed in float64 and rounded once to the dtype of the result.
/// Shape    and dtype as median
/// Cost     as median
/// Throws   invalid_argument also for float8
tensor quantile(const expr& x, double q, std::optional<index_t> axis = std::nullopt,
                quantile_method method = quantile_method::linear);

/// Several quantiles, found together.
/// Shape    [number of them], then as median
tensor quantile(const expr& x, const std::vector<double>& q,
                std::optional<index_t> axis = std::nullopt,
                quantile_method method = quantile_method::linear);

/// The same for the elements that are not NaN. A lane without such elements gives NaN. Integers are
/// never NaN.
/// Shape    and dtype as median and quantile
/// Cost     the same, and for floats one more evaluation of the operand, which counts the elements
///          that are not NaN
tensor nanmedian(const expr& x, std::optional<index_t> axis = std::nullopt);
tensor nanquantile(const expr& x, double q, std::optional<index_t> axis = std::nullopt,
                   quantile_method method = quantile_method::linear);
tensor nanquantile(const expr& x, const std::vector<double>& q,
                   std::optional<index_t> axis = std::nullopt,
                   quantile_method method = quantile_method::linear);

}  // namespace shale
