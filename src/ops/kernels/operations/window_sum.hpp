// Describes the sums of `correlate` and `convolve`, and the type of their kernels.
#pragma once

#include <cstddef>

#include "shale/dims.hpp"

namespace shale::ops {

/// A row of weights, and the input under its first weight for the first output. Both are
/// contiguous.
struct window_row {
  const std::byte* input;
  const std::byte* weights;
};

/// Adds to each of `count` sums the products of `taps` weights with the inputs from its position
/// on: for every row, for every t: sums[i] += weights[t] * input[i + t]. Each sum takes its
/// products in this order, and each product and sum is rounded to the dtype (no fused operations),
/// so all instruction sets give the same bits. Integers wrap; for bool, the product is "and" and
/// the sum "or". Sums share no byte with the rows.
using window_kernel = void (*)(std::byte* sums, const window_row* rows, index_t row_count,
                               index_t taps, index_t count);

}  // namespace shale::ops
