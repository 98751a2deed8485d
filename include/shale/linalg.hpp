// Products of vectors and matrices.
#pragma once

#include <string>

#include "shale/expr.hpp"
#include "shale/reductions.hpp"
#include "shale/tensor.hpp"

namespace [[gnu::visibility("default")]] shale {

/// NumPy's dot. For two tensors of rank 1, the sum of products, without conjugating complex values.
/// For other ranks, the value of the expression below.
/// Shape    rank 0 for two tensors of rank 1; dtype promoted. Floats are multiplied and summed in
///          double precision or better, integers wrap; bool: products are 'and', sums are 'or'
/// Cost     for rank 1, one pass, parallel; the result has the same bits for any number of threads
///          and any instruction set
/// Throws   invalid_argument (extents, dtypes that do not promote, float8), out_of_memory,
///          cancelled, io, corrupt (a checksum)
tensor dot(const tensor& a, const tensor& b);

/// The matrix product by NumPy's rule. The last two axes are matrices, and the axes in front of
/// them broadcast. An operand of rank 1 is a row on the left or a column on the right; the result
/// does not have its axis.
/// Shape    (…, m, n) from (…, m, k) and (…, k, n); dtype promoted. float16 and bfloat16 compute in
///          float32; integers wrap; bool: products are 'and', sums are 'or'
/// Cost     O(m n k). OpenBLAS multiplies floats and complex numbers, tiles of the result in
///          parallel. Operands whose matrices have stride 1 along one axis, and a positive one
///          below 2^31 along the other, are read in place, others are copied first. If the copies
///          and the mapped operands together exceed half of the budget, operands are read block by
///          block (docs/caveats.md). The result has the same bits for any number of threads on one
///          CPU; other CPUs may round differently (docs/numerics.md)
/// Throws   invalid_argument (rank 0, extents, dtypes that do not promote, float8), out_of_memory,
///          unsupported (as blas_name), cancelled, io, corrupt (a checksum)
tensor matmul(const tensor& a, const tensor& b);

/// The matrix product of expressions by the same rule. The evaluation first computes operands that
/// are not tensors, then the product, as a whole into memory of the executor's pool. The product
/// is held until all its readers are computed.
/// Throws   invalid_argument (as the other), out_of_memory
expr matmul(const expr& a, const expr& b);

/// NumPy's dot. If an operand has rank 0, both are multiplied. Otherwise the products are summed
/// along the last axis of `a` and the last but one of `b` (or its only one); the other axes of `b`
/// follow those of `a`. Two vectors are multiplied and summed as by `vecdot`: in double precision,
/// with the same bits on every CPU. Other operands are multiplied as by `matmul`.
/// Throws   invalid_argument (extents, dtypes), out_of_memory
expr dot(const expr& a, const expr& b);

/// The products of every element of `a` with every element of `b`, both in row-major order.
/// Shape    (a.size(), b.size()); dtype promoted
/// Cost     lazy: nothing now, and one multiplication for each element when it is evaluated
/// Throws   invalid_argument (dtypes that do not promote), out_of_memory
expr outer(const expr& a, const expr& b);

/// The sum of a diagonal of the matrices of the last two axes; diagonals are counted as by `eye`.
/// Shape    that of `a` without the last two axes; dtype as by `sum`
/// Cost     lazy: nothing now, and one pass over the diagonals when it is evaluated
/// Throws   invalid_argument (fewer than two axes), out_of_memory
expr trace(const expr& a, index_t diagonal = 0);

/// The norm of vectors: (sum |a|^order)^(1 / order). Infinity gives the largest magnitude,
/// -infinity the smallest, and 0 the number of elements that are not zero. Integers are first
/// converted to floats, as by `sqrt`. All axes together are one vector if `axes` is not given.
/// Shape    that of `a` without the axes, or with extents of 1; the real dtype of the magnitudes
/// Cost     one pass over `a`
/// Throws   invalid_argument (axes; a NaN as order; extrema of no elements), out_of_memory
expr vector_norm(const expr& a, double order = 2, const axes_option& axes = {},
                 keepdims keep = keepdims::no);

/// The BLAS library and the CPU whose kernels it uses: "OpenBLAS 0.3.21, SkylakeX". If OpenBLAS did
/// not choose the kernels by the CPU's model, the reason follows: "OpenBLAS 0.3.21, Haswell (by the
/// CPU's features; OpenBLAS would take Prescott)", or the value of OPENBLAS_CORETYPE.
/// Throws   unsupported (OPENBLAS_CORETYPE asks for kernels that this CPU cannot run; products of
///          floats and complex numbers throw the same), std::bad_alloc
std::string blas_name();

}  // namespace shale
