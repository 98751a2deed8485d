// Positions in sorted elements, and elements without repetitions.
//
//   tensor bins = searchsorted(sort(a), x);            // int64: where each x would be inserted
//   auto [values, counts] = unique_counts(x);          // sorted values, and how often each occurs
//
// The order is that of sorting.hpp: NaN is larger than every number, and -0 and +0 are equal.
// Complex numbers have no order.
//
// These functions evaluate at once, on the executor of the calling thread. Operands may be any
// expressions. Except by `unique_values` and `unique_counts`, they are held whole, in memory of the
// executor's pool unless they are contiguous tensors in memory. Results are new row-major tensors
// in memory of the pool, and have the same bits for any number of threads.
// Throws   invalid_argument (shapes that do not fit, complex elements), out_of_memory, cancelled,
//          io (as `sort`), and as `eval`
// Threads  as `eval`
#pragma once

#include <cstdint>
#include <optional>

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The place among equal elements: before all of them (left), or behind all of them (right).
enum class search_side : std::uint8_t { left, right };

/// For each element of `values` the position in `sorted` before which it is inserted in order: the
/// number of elements that are less (left), or that are not greater (right). They are compared in
/// the promoted dtype; an integer of C++ in the dtype of the other operand if that can hold it. If
/// `sorted` is not sorted, positions are not defined, but in range.
/// `sorter`, integers, gives the order of a `sorted` that is not sorted, as argsort does.
/// Shape    that of `values`, int64; `sorted` has one axis, and `sorter` its length
/// Cost     a binary search for each value, in parallel
/// Throws   invalid_argument also for a `sorter` of another dtype or out of range
tensor searchsorted(const expr& sorted, const expr& values, search_side side = search_side::left,
                    const std::optional<expr>& sorter = std::nullopt);

/// The number of the bin of each element: with edges that rise, bin i has the elements with
/// edges[i - 1] <= x < edges[i], or edges[i - 1] < x <= edges[i] if `closed` is `right`; with edges
/// that fall, the same with the edges exchanged. As NumPy's digitize.
/// Shape    that of `x`, int64; `edges` has one axis
/// Throws   invalid_argument also if the edges neither rise nor fall
tensor digitize(const expr& x, const expr& edges, search_side closed = search_side::left);

/// Sorted elements without repetitions, and how often each occurs (int64).
struct unique_with_counts {
  tensor values;
  tensor counts;
};

/// Sorted elements without repetitions, and for each element of the operand the index of its value
/// (int64, the operand's shape).
struct unique_with_inverse {
  tensor values;
  tensor inverse_indices;
};

/// All of these, and the row-major index of each value's first occurrence (int64).
struct unique_parts {
  tensor values;
  tensor indices;
  tensor inverse_indices;
  tensor counts;
};

/// The elements of `x` in order, without repetitions. As in the array API standard, every NaN
/// counts as a value of its own. Among zeros, the sign of the first one is kept.
/// Shape    [number of values]; the dtype of `x`
/// Cost     a sort. If the operand is not a tensor in memory and exceeds a quarter of the budget,
///          it is evaluated in slabs, each once. Values that must be computed as a whole before any
///          slab are also computed once. The distinct elements and their counts are held, and
///          sorted with those of each slab
tensor unique_values(const expr& x);

/// The same with more results. Inverse and first indices cost an argsort, too, of the operand as a
/// whole.
unique_with_counts unique_counts(const expr& x);
unique_with_inverse unique_inverse(const expr& x);
unique_parts unique_all(const expr& x);

}  // namespace shale
