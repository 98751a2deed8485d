// Multiplies batches of matrices, in memory or block by block.
#pragma once

#include "shale/executor.hpp"
#include "shale/tensor.hpp"

namespace shale::ops {

/// The shape of the result of `matmul`, by NumPy's rule.
/// Throws   invalid_argument (rank 0, extents)
dims product_shape(const dims& a, const dims& b);

/// The dtype of the result of `matmul` and `dot`.
/// Throws   invalid_argument (dtypes that do not promote, float8)
dtype product_dtype(dtype a, dtype b);

/// out = a b for every matrix of a batch: (…, m, n) = (…, m, k) (…, k, n). The axes before the last
/// two are equal. `out` is row-major, not empty, and of a dtype that `multiply` takes; operands of
/// other dtypes are converted.
///
/// Mapped operands must be brought into memory, and operands that `multiply` cannot read in place
/// must be copied. If both fit in half of the budget, they are brought in whole. Otherwise they are
/// brought in block by block: a block of one operand stays in memory while all blocks of the other
/// that meet it are read, with the block shape that reads the fewest bytes. The sums along k are
/// then computed block by block, so floats may round differently.
/// Throws   out_of_memory, cancelled, io
void multiply_matrices(const tensor& out, const tensor& a, const tensor& b, executor& on);

/// A new tensor for the product of two tensors, as `matmul`.
/// Throws   invalid_argument (rank 0, extents, dtypes that do not promote, float8), out_of_memory,
///          cancelled, io
tensor multiplied(const tensor& a, const tensor& b, executor& on);

}  // namespace shale::ops
