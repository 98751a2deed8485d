// Least squares, pseudo-inverses, ranks and condition numbers, from singular values.
//
//   auto [x, residuals, rank, values] = lstsq(a, b);   // |a x - b| is least
//
// The last two axes are matrices of any shape, and the axes in front of them are a batch. Operands,
// dtypes and costs are those of linear_systems.hpp, errors also those of `svd` in spectra.hpp.
// Singular values of at most `tolerance` times the largest one count as zero. By default that is
// max(m, n) epsilon for matrices of shape (m, n), with the epsilon of the dtype that is computed
// in.
// Throws   invalid_argument (fewer than two axes, extents that do not fit, float8, NaN and
//          infinity, no convergence), unsupported, out_of_memory, cancelled, and as `eval`
// Threads  as `eval`
#pragma once

#include <optional>

#include "shale/expr.hpp"
#include "shale/linear_systems.hpp"

namespace [[gnu::visibility("default")]] shale {

/// Solutions, and how well the matrices determine them.
struct lstsq_result {
  tensor x;                ///< (…, n, k), or (…, n) if `b` has rank 1
  tensor residuals;        ///< (…, k) or (…), real: the sum of |a x - b|^2 of each right side
  tensor rank;             ///< of each matrix, int64
  tensor singular_values;  ///< (…, min(m, n)), real, descending
};

/// The x for which |a x - b| is least; if there are several, the shortest one. If `b` has rank 1,
/// it is one vector for all matrices of the batch. Residuals are given for any rank (NumPy leaves
/// them out for ranks below n).
lstsq_result lstsq(const expr& a, const expr& b, std::optional<double> tolerance = std::nullopt);

/// The Moore-Penrose inverses.
/// Shape    (…, n, m) from (…, m, n)
tensor pinv(const expr& a, std::optional<double> tolerance = std::nullopt);

/// The numbers of singular values that are not zero.
/// Shape    that of the batch, int64
tensor matrix_rank(const expr& a, std::optional<double> tolerance = std::nullopt);

/// The condition numbers: the largest singular value divided by the smallest one; infinite for
/// singular matrices.
/// Shape    that of the batch, real
/// Throws   invalid_argument also for matrices without elements
tensor cond(const expr& a);

}  // namespace shale
