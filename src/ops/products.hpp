// Products of batches of matrices, in memory or block by block.
#pragma once

#include "shale/executor.hpp"
#include "shale/tensor.hpp"

namespace shale::ops {

/// Of the result of `matmul`, by NumPy's rule.
/// Throws   invalid_argument (rank 0, extents)
dims product_shape(const dims& a, const dims& b);

/// Of the result of `matmul` and `dot`.
/// Throws   invalid_argument (dtypes that do not promote, float8)
dtype product_dtype(dtype a, dtype b);

/// What matrices whose product is of `type` are multiplied in: the whole result, before it is
/// narrowed.
dtype multiplied_as(dtype type) noexcept;

/// out = a b for every matrix of a batch: (…, m, n) = (…, m, k) (…, k, n), the axes before the last
/// two equal. `out` is row-major, not empty, and of a dtype that `multiply` takes; operands of other
/// dtypes are converted.
///
/// What would have to be brought into memory (mapped files, and copies of operands that `multiply`
/// cannot read where they lie) is brought in whole where that fits in half of the budget, else block
/// by block: blocks of one operand stay while those of the other pass, so that as few bytes as
/// possible are read. Sums are then taken block by block too, and floats may round differently.
/// Throws   out_of_memory, cancelled, io
void multiply_matrices(const tensor& out, const tensor& a, const tensor& b, executor& on);

}  // namespace shale::ops
