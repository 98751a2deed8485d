// The largest singular values and principal components of matrices that are larger than memory, by
// random projection.
//
//   generator source(1);
//   const lowrank_result found = svd_lowrank(source, a, 20);   // a is near (u * s) vh
//   const pca_result parts = pca(source, x, 5);
//
// The operand is one matrix: an expression, a tile source or a mapped file of any strides, with two
// axes. Its rows are read in file order, by blocks that fit in the executor's budget
// (docs/caveats.md); if it has more than 16 columns for each row, its columns are read instead.
// Dtypes are those of linear_systems.hpp. An element that is NaN or infinite is an error.
//
// A matrix is multiplied by `rank` + `oversampling` random vectors, or by as many as it has rows or
// columns. The product, made orthonormal, is multiplied by the adjoint of the matrix. A power
// iteration makes the result orthonormal and does both products again. If there are as many vectors
// as columns, nothing is random, and results are exact up to rounding. Otherwise the singular
// values in the result are too small. The error shrinks with every iteration. It shrinks faster if
// the singular values after the first `rank` + `oversampling` are smaller (docs/numerics.md).
//
// Blocks depend on the shape alone. So svd_lowrank has the same bits for any number of threads, any
// budget and any layout, on one CPU. The same holds for pca, as far as it holds for `mean`.
// Throws   invalid_argument (other than two axes, float8, a rank above the number of rows or of
//          columns or below 0, negative options, NaN and infinity, products that overflow, no
//          convergence), unsupported (as svd), out_of_memory, cancelled, io, out_of_space, and as
//          `eval`. The generator then keeps its position
// Threads  as `eval`
#pragma once

#include "shale/expr.hpp"
#include "shale/random.hpp"
#include "shale/tensor.hpp"

namespace [[gnu::visibility("default")]] shale {

/// How a matrix is projected.
struct lowrank_options {
  index_t oversampling = 10;  ///< random vectors besides those of the rank
  index_t iterations = 2;     ///< power iterations after the first two products
};

/// A part of a singular value decomposition: the product (u * s) vh is near the matrix. Columns of
/// u and rows of vh are orthonormal. In each row of vh, the first element of the largest magnitude
/// is real and positive. If there are more than 16 columns for each row, this holds for each column
/// of u instead. The factor for which it holds is in memory. The other one is lazy: an evaluation
/// of it reads the matrix again.
struct lowrank_result {
  expr u;    ///< (m, rank)
  tensor s;  ///< (rank), real, descending
  expr vh;   ///< (rank, n)
};

/// The `rank` largest singular values of a matrix of shape (m, n), and their vectors. Advances the
/// generator by n numbers for each random vector (by m if n > 16 m), and by twice that for complex
/// matrices. An exact result does not advance it.
/// Cost     O(m n (rank + oversampling)) for each read of the matrix, in parallel. It is read
///          2 (1 + iterations) times; once if there are as many vectors as columns. Holds a few
///          matrices of n rows (m rows if n > 16 m) and rank + oversampling columns, one of them
///          for each block that is computed at a time, and what `tsqr` keeps
/// Lifetime as `tsqr`, for the part that is lazy
/// Source   N. Halko, P. G. Martinsson, J. A. Tropp, Finding structure with randomness,
///          SIAM Review 53 (2011), algorithms 4.4 and 5.1
lowrank_result svd_lowrank(generator& from, const expr& a, index_t rank,
                           const lowrank_options& options = {});

/// Principal components: the directions along which samples differ most.
struct pca_result {
  tensor mean;                      ///< (n): of each column
  tensor components;                ///< (count, n): orthonormal rows, signs as in vh above
  tensor explained_variance;        ///< (count), real: along each component, divided by m - 1
  tensor explained_variance_ratio;  ///< (count), real: its share of all variance; 0 if that is 0
  tensor singular_values;           ///< (count), real: those of the samples minus the mean
};

/// The first `count` principal components of m samples: rows of n numbers. The mean is subtracted
/// from each block of rows when it is read, so no centred copy is made, and nothing cancels.
/// Advances the generator as svd_lowrank.
/// Cost     as svd_lowrank, and one more read for the mean and the variance
/// Throws   invalid_argument also for fewer than two rows
pca_result pca(generator& from, const expr& samples, index_t count,
               const lowrank_options& options = {});

}  // namespace shale
