// How often values occur: by bins, or by whole numbers.
//
//   auto [counts, edges] = histogram(x, 256, {.range = value_range{0, 1}});
//   tensor sizes = bincount(indices);
//
// These functions evaluate at once, on the executor of the calling thread. Operands may be any
// expressions, also tile sources and mapped files larger than the budget: if they are not tensors
// in memory and exceed a quarter of it, they are evaluated in slabs, each once. Values that must be
// computed as a whole before any slab, such as the mean in x - mean(x), are computed once for each
// operand, and held meanwhile. Results are new tensors in memory of the executor's pool. They have
// the same bits for any number of threads and any budget: counts are whole numbers, and weights are
// added in row-major order, in float64.
// Throws   invalid_argument (shapes that do not fit, complex elements, bins or edges that make no
//          sense), out_of_memory (also more bins than the budget has bytes for), cancelled, io
//          (another process changes an operand of bincount in shared memory while it is counted),
//          and as `eval`
// Threads  as `eval`
#pragma once

#include <optional>

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The lowest and the highest value that bins cover, both included.
struct value_range {
  double low = 0;
  double high = 1;
};

/// Options of a histogram: its range, the weights of elements, and whether it is a density.
struct histogram_options {
  /// The range of equal bins. By default, it goes from the smallest to the largest element, which
  /// costs one more read of the operand. If both are equal, the range is extended by 0.5 on each
  /// side, or to the next float64 if that is further. If there are no elements, it is 0 to 1. With
  /// edges, a range is not allowed.
  std::optional<value_range> range = std::nullopt;

  /// The weight of each element, which otherwise counts as 1: real numbers, with the shape of the
  /// operand.
  std::optional<expr> weights = std::nullopt;

  /// Whether counts are divided by their sum and by the widths of the bins.
  bool density = false;
};

/// The counts of bins, and their edges (float64). There is one more edge than bins.
struct binned_counts {
  tensor counts;
  tensor edges;
};

/// Counts the elements in `bins` bins of equal width, as NumPy's histogram. Each bin includes its
/// lower edge, and the last one includes its upper edge, too. Elements outside the range and NaN
/// are not counted. Elements and edges are compared in float64. If bins are narrower than the
/// distance between neighbouring float64 numbers, some edges are equal.
/// Shape    [bins]: int64, or float64 with weights or density
/// Cost     one multiplication for each element, or a binary search where edges are equal or the
///          width of the range overflows; 8 bytes for each bin and thread, 16 to 40 for each bin.
///          With weights, every thread looks at all elements and adds those of its own bins
/// Throws   invalid_argument also for bins <= 0, a range that is not finite or not in order, and
///          NaN or infinite elements if the range is taken from them
binned_counts histogram(const expr& x, index_t bins = 10, const histogram_options& options = {});

/// The same in bins between the given edges, which must not decrease or be NaN.
/// Shape    `edges` has one axis of one or more elements
/// Cost     a binary search for each element
/// Throws   invalid_argument also for edges that decrease or are NaN, and with a range
binned_counts histogram(const expr& x, const expr& edges, const histogram_options& options = {});

/// Counts how often each of the numbers 0, 1, 2, … occurs among integers. The numbers end with the
/// largest element, but there are at least `length_min` of them. With weights, each count is
/// replaced by the sum of the weights of its elements.
/// Shape    [largest element + 1 or more]: int64, or float64 with weights. `weights` has the shape
///          of `x`
/// Throws   invalid_argument also for negative elements, other dtypes than integers and bool, and a
///          negative `length_min`
tensor bincount(const expr& x, const std::optional<expr>& weights = std::nullopt,
                index_t length_min = 0);

}  // namespace shale
