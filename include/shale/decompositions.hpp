// Factorizations of matrices by exchanges of rows and by reflections, computed by LAPACK.
//
//   auto [p, l, u] = lu(a);        // a = p l u
//   auto [q, r] = qr(a);           // a = q r
//
// The last two axes are matrices of any shape, and the axes in front of them are a batch. Operands,
// dtypes, costs and errors are those of linear_systems.hpp; a factorization of a singular matrix is
// no error.
// Operands are held whole; tall_qr.hpp factors tall matrices that are larger than memory.
// Cost     O(rows columns min(rows, columns)) for each matrix
// Throws   invalid_argument (fewer than two axes, float8), out_of_memory, cancelled, unsupported,
//          and as `eval`
// Threads  as `eval`
#pragma once

#include <cstdint>
#include <optional>

#include "shale/expr.hpp"
#include "shale/linear_systems.hpp"

namespace [[gnu::visibility("default")]] shale {

/// a = p l u, with k = min(m, n) for matrices of shape (m, n).
struct lu_result {
  tensor p;  ///< (…, m, m), real: a permutation
  tensor l;  ///< (…, m, k): 1 on the diagonal, 0 above it
  tensor u;  ///< (…, k, n): 0 below the diagonal
};

/// The LU factorization with row exchanges.
lu_result lu(const expr& a);

/// The same factors in packed form, for `lu_solve`.
struct lu_factors {
  tensor packed;  ///< (…, m, n): u, and l below its diagonal
  tensor pivots;  ///< (…, k), int64: row i was exchanged with row pivots[i] >= i, one after another
};

/// Packed factors of the LU factorization, in one tensor as large as `a`.
lu_factors lu_factor(const expr& a);

/// Solves a x = b for x, from the factors of square matrices.
/// Shape    as solve
/// Throws   invalid_argument also for a zero on the diagonal of u, and for pivots out of range
tensor lu_solve(const lu_factors& factors, const expr& b);

/// Which columns of q are wanted.
enum class qr_columns : std::uint8_t {
  reduced,   ///< as many as min(m, n)
  complete,  ///< all m
};

/// a = q r. The columns of q are orthonormal, and r is 0 below its diagonal, whose numbers may have
/// any sign.
struct qr_result {
  tensor q;  ///< (…, m, k)
  tensor r;  ///< (…, k, n)
};

/// The QR factorization by reflections.
/// Cost     reduced: twice that of qr_r; complete: O(m^2 n)
qr_result qr(const expr& a, qr_columns columns = qr_columns::reduced);

/// r alone, of shape (…, min(m, n), n).
tensor qr_r(const expr& a);

/// q as a product of reflections, in LAPACK's form: q can be applied without being computed.
struct qr_factors {
  tensor packed;  ///< (…, m, n): r, and the reflections below its diagonal
  tensor scales;  ///< (…, min(m, n))
};

/// The QR factorization without computing q.
/// Cost     as qr_r
qr_factors qr_factor(const expr& a);

/// On which side of the operand q stands.
enum class q_side : std::uint8_t { left, right };

/// q c, or q^H c, or the products c q and c q^H; q has all its m columns.
/// Shape    as `c`: (…, m, k) if q stands on the left, (…, k, m) on the right; the batches
///          broadcast
/// Throws   invalid_argument also for extents that do not fit, and for q^T of complex matrices
tensor apply_q(const qr_factors& factors, const expr& c, matrix_use use = matrix_use::as_is,
               q_side side = q_side::left);

/// The Cholesky factorization of positive semidefinite matrices, with the largest pivot first:
/// l l^H (or u^H u) is a with its rows and columns in the order of the pivots.
struct pivoted_cholesky_result {
  tensor factor;  ///< (…, n, n): the columns of l (rows of u) from the rank on are 0
  tensor pivots;  ///< (…, n), int64
  tensor rank;    ///< the rank of each matrix, int64
};

/// The pivoted Cholesky factorization. It stops when no pivot that is left is larger than
/// `tolerance`, an absolute number. By default that is n epsilon times the largest element of the
/// diagonal, with the epsilon of the dtype that is computed in.
/// Throws   invalid_argument also for matrices that are not square, and for a tolerance that is
///          negative or NaN
pivoted_cholesky_result pivoted_cholesky(const expr& a, triangle part = triangle::lower,
                                         std::optional<double> tolerance = std::nullopt);

}  // namespace shale
