// Norms, powers and exponentials of matrices.
//
// The last two axes are matrices, and the axes in front of them are a batch. Operands, dtypes and
// errors are those of linear_systems.hpp.
// Threads  as `eval`
#pragma once

#include <cstdint>

#include "shale/expr.hpp"
#include "shale/reductions.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The norms of a matrix. The comments have NumPy's `ord`.
enum class matrix_order : std::uint8_t {
  frobenius,                ///< 'fro': the root of the sum of |element|^2
  nuclear,                  ///< 'nuc': the sum of the singular values
  largest_column_sum,       ///< 1: of |element|
  smallest_column_sum,      ///< -1
  largest_row_sum,          ///< infinity
  smallest_row_sum,         ///< -infinity
  largest_singular_value,   ///< 2
  smallest_singular_value,  ///< -2
};

/// The norms of matrices.
/// Shape    that of the batch, real; with the two axes as length 1 if they are kept
/// Cost     one pass, or `svdvals` for singular values
/// Throws   invalid_argument (fewer than two axes; extrema of no elements; as svdvals),
///          out_of_memory
tensor matrix_norm(const expr& a, matrix_order order = matrix_order::frobenius,
                   keepdims keep = keepdims::no);

/// The product of `exponent` factors `a`, by squaring; the identity for 0, and powers of the
/// inverse for negative exponents. Integers stay integers and wrap, except for negative exponents.
/// Shape    as `a`; dtype as `matmul`
/// Cost     at most 2 log2(exponent) products
/// Throws   invalid_argument (matrices that are not square, float8; as inv), and as `matmul`
tensor matrix_power(const expr& a, index_t exponent);

/// The exponential: the sum of a^k / k!. A matrix with NaN or infinity gives NaN.
/// Shape    as `a`
/// Cost     6 products and a solution of equations, and one more product for each halving that
///          brings the matrix below a norm of 5.4
/// Throws   invalid_argument (matrices that are not square, float8), out_of_memory, cancelled
/// Source   Higham, The Scaling and Squaring Method for the Matrix Exponential Revisited, SIAM J.
///          Matrix Anal. Appl. 26 (2005): the Padé approximant of degree 13
tensor expm(const expr& a);

}  // namespace shale
