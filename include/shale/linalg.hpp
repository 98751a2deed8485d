// Products of vectors and matrices.
#pragma once

#include <string>

#include "shale/executor.hpp"
#include "shale/tensor.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The sum of products of two rank-1 tensors; complex values are not conjugated.
/// Shape    rank 0; dtype promoted. Floats multiply and sum in double precision or better, integers
///          wrap, bool is "any of both"
/// Cost     one pass, parallel; the same bits for any number of threads and any instruction set
/// Throws   invalid_argument (ranks, extents, dtypes that do not promote, float8), cancelled, io
tensor dot(const tensor& a, const tensor& b, executor* on = nullptr);

/// The matrix product, by NumPy's rule: the last two axes are matrices, the axes before them
/// broadcast; a rank-1 operand is a row on the left or a column on the right, and that axis is
/// dropped again.
/// Shape    (…, m, n) of (…, m, k) and (…, k, n); dtype promoted. float16 and bfloat16 compute in
///          float32; integers wrap; bool is "any of both"
/// Cost     O(m n k): floats and complex numbers on OpenBLAS, tiles of the result in parallel.
///          Operands whose matrices have a unit stride along one axis are read in place, others are
///          copied first; what does not fit in half of the budget so is brought in block by block
///          (docs/caveats.md). The same bits for any number of threads on one CPU; other CPUs may round
///          differently (docs/numerics.md)
/// Throws   invalid_argument (rank 0, extents, dtypes that do not promote, float8), out_of_memory,
///          cancelled, io
tensor matmul(const tensor& a, const tensor& b, executor* on = nullptr);

/// The BLAS library at work and the CPU it chose its kernels for: "OpenBLAS 0.3.21, SkylakeX".
std::string blas_name();

}  // namespace shale
