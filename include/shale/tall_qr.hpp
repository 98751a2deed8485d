// The QR factorization of matrices that are larger than memory, by blocks of rows (TSQR).
//
//   const tsqr_result found = tsqr(a);   // a = q r; reads a once, and holds r
//   eval_into(out, found.q);             // reads a again, and writes q block by block
//
// The operand is one matrix: an expression, a tile source or a mapped file of any strides, with two
// axes. Its rows are read in file order, by blocks that fit in the executor's budget
// (docs/caveats.md). Dtypes are those of linear_systems.hpp. NaN and infinity propagate.
//
// Blocks and the order in which they are reduced depend on the shape alone. So results have the
// same bits for any number of threads, any budget and any layout, on one CPU.
// Throws   invalid_argument (other than two axes, float8), out_of_memory, unsupported (more than
//          2^31 - 1 columns; kernels that this CPU cannot run, see blas_name in linalg.hpp),
//          cancelled, io and out_of_space (also of a temporary file, see tsqr), and as `eval`
// Threads  as `eval`
#pragma once

#include "shale/expr.hpp"
#include "shale/tensor.hpp"

namespace [[gnu::visibility("default")]] shale {

/// a = q r. The columns of q are orthonormal. r is 0 below its diagonal, which is real and not
/// negative; so r is unique if the columns of `a` are linearly independent.
struct tsqr_result {
  expr q;    ///< (m, k), with k = min(m, n) for a matrix of shape (m, n)
  tensor r;  ///< (k, n)
};

/// The QR factorization of a matrix with many rows. q is lazy: an evaluation that reads some of its
/// rows reads the blocks of `a` to which they belong, and factors these again. So q may be written
/// into a file or into chunks, or be a part of a larger expression. q is orthonormal even if the
/// columns are linearly dependent.
/// Cost     O(m n^2), in parallel: one read of `a`, and one more for each evaluation of q. A block
///          has max(4 n, 2^18 / n) rows. A matrix of shape (k, k) is kept for each block as long as
///          q is; if they take more than an eighth of the budget, they lie in a file without a name
///          in the folder that TMPDIR names, or in /var/tmp. If `a` is computed from a lazy factor
///          of a matrix that is itself computed from one, `a` is computed as a whole first, and held
///          in memory of the executor's pool as long as q is (docs/caveats.md, "Small stacks")
/// Lifetime q keeps what `a` reads alive. What `a` reads must not change as long as q is evaluated,
///          so q is not evaluated into it. The pool of the executor outlives q
/// Source   J. Demmel, L. Grigori, M. Hoemmen, J. Langou, Communication-optimal parallel and
///          sequential QR and LU factorizations, SIAM Journal on Scientific Computing 34 (2012)
tsqr_result tsqr(const expr& a);

/// r alone, with the same bits. Nothing is kept for each block.
/// Cost     one read of `a`
tensor tsqr_r(const expr& a);

}  // namespace shale
