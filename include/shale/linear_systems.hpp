// Systems of linear equations, inverses and determinants, computed by LAPACK.
//
//   tensor x = solve(a, b);           // a x = b
//   tensor factor = cholesky(a);      // factor factor^H = a
//   tensor y = cholesky_solve(factor, b);
//
// The last two axes are matrices, and the axes in front of them are a batch; batches of two
// operands broadcast. Names and meaning are those of the array API standard, then NumPy's. Operands
// may be expressions, tile sources or mapped files, of any strides.
//
// Float and complex operands are computed in their promoted dtype, which the result has; float16
// and bfloat16 are computed in float32 and rounded. Integers and bool count as float64. Matrices
// without elements and batches without matrices are computed too. Elements that are NaN or infinite
// are not refused; they propagate as in any arithmetic.
//
// These functions evaluate at once, on the executor of the calling thread. Results are new
// row-major tensors in memory of the executor's pool. Operands are held whole, in memory of the
// pool unless they are tensors in memory.
// Cost     O(n^3) for each matrix. Matrices of a batch are computed in parallel, each by one
//          thread, with a column-major copy of it as work memory. Results have the same bits for
//          any number of threads on one CPU
// Throws   invalid_argument (fewer than two axes, a matrix that is not square, extents that do not
//          fit, float8, a singular matrix, with a pivot that is exactly zero: the error names
//          the first such matrix and pivot, both counted from 0), out_of_memory, cancelled,
//          unsupported (more than 2^31 - 1 rows; kernels that this CPU cannot run, see blas_name in
//          linalg.hpp), and as `eval`
// Threads  as `eval`
#pragma once

#include <cstdint>

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The triangle of a matrix that is used. It includes the diagonal; the other elements are ignored.
enum class triangle : std::uint8_t { lower, upper };

/// What is done to a matrix before it is used.
enum class matrix_use : std::uint8_t { as_is, transposed, conjugate_transposed };

/// Whether the diagonal counts as ones, instead of the elements that it holds.
enum class unit_diagonal : bool { no, yes };

/// Solves a x = b for x, by an LU factorization with row exchanges. If `b` has rank 1, it is one
/// vector for all matrices of the batch; otherwise its columns are right-hand sides.
/// Shape    (…, n, k) from (…, n, n) and (…, n, k); (…, n) from (…, n, n) and (n)
/// Cost     each matrix of `a` is factored once, also where it broadcasts, into memory of the pool
tensor solve(const expr& a, const expr& b);

/// The inverses of matrices. To solve equations, `solve` is faster and rounds less.
/// Shape    as `a`
tensor inv(const expr& a);

/// The determinants of matrices: the product of the pivots, which overflows only if the result
/// does. It is 0 for singular matrices, and 1 for matrices of shape (0, 0).
/// Shape    that of the batch
tensor det(const expr& a);

/// A determinant is sign * exp(logabsdet).
struct slogdet_result {
  tensor sign;       ///< -1, 0 or 1; for complex matrices 0, or a number of magnitude 1
  tensor logabsdet;  ///< real; -infinity for singular matrices
};

/// The determinants of matrices as sign and logarithm, for those that overflow or underflow.
/// Shape    both that of the batch
slogdet_result slogdet(const expr& a);

/// The Cholesky factor of symmetric (complex: Hermitian) positive definite matrices: the lower
/// triangular l with l l^H = a, or the upper triangular u with u^H u = a. Only that triangle of `a`
/// is read.
/// Shape    as `a`; the other triangle is 0
/// Throws   invalid_argument also for a matrix that is not positive definite: the error has the
///          order of the first leading minor that is not
tensor cholesky(const expr& a, triangle part = triangle::lower);

/// Solves a x = b for x, from the Cholesky factor of `a`.
/// Shape    as solve
tensor cholesky_solve(const expr& factor, const expr& b, triangle part = triangle::lower);

/// The inverse of `a` from its Cholesky factor.
/// Shape    as `factor`
/// Throws   invalid_argument also for a zero on the diagonal
tensor cholesky_inverse(const expr& factor, triangle part = triangle::lower);

/// How `triangular_solve` reads a matrix.
struct triangular_options {
  triangle part = triangle::lower;
  matrix_use use = matrix_use::as_is;
  unit_diagonal unit = unit_diagonal::no;
};

/// Solves a x = b for x, where `a` is triangular; or a^T x = b, or a^H x = b.
/// Shape    as solve
/// Throws   invalid_argument also for a zero on the diagonal
tensor triangular_solve(const expr& a, const expr& b, const triangular_options& options = {});

}  // namespace shale
