// Eigenvalues and singular values, computed by LAPACK.
//
//   auto [values, vectors] = eigh(a);   // a vectors = vectors * values, a symmetric
//   auto [u, s, vh] = svd(a, svd_vectors::reduced);  // a = (u * s) vh
//
// The last two axes are matrices, and the axes in front of them are a batch. Operands, dtypes and
// costs are those of linear_systems.hpp. The results are found by iterations, so an element that is
// NaN or infinite is an error, and so is a matrix for which LAPACK does not converge ("no
// convergence"). Vectors have magnitude 1; their signs (for complex numbers: phases) may differ
// between CPUs. Operands are held whole; low_rank.hpp has the largest singular values of matrices
// that are larger than memory.
// Cost     O(n^3) for each matrix, with 10 to 100 times the time of `solve`
// Throws   invalid_argument (fewer than two axes, matrices that are not square, float8, NaN and
//          infinity, no convergence), unsupported (work memory of 2^31 elements or more, from about
//          20,000 rows and columns), out_of_memory, cancelled, and as `eval`
// Threads  as `eval`
#pragma once

#include <cstdint>

#include "shale/expr.hpp"
#include "shale/linear_systems.hpp"

namespace [[gnu::visibility("default")]] shale {

/// Eigenvalue i belongs to column i of the vectors.
struct eigh_result {
  tensor eigenvalues;   ///< (…, n), real, ascending
  tensor eigenvectors;  ///< (…, n, n): columns, orthonormal
};

/// The eigenvalues and eigenvectors of symmetric (complex: Hermitian) matrices, of which one
/// triangle is read.
eigh_result eigh(const expr& a, triangle part = triangle::lower);

/// The eigenvalues alone.
tensor eigvalsh(const expr& a, triangle part = triangle::lower);

/// Eigenvalue i belongs to column i of the vectors.
struct eig_result {
  tensor eigenvalues;   ///< (…, n), complex, in no order
  tensor eigenvectors;  ///< (…, n, n), complex: columns, right eigenvectors
};

/// The eigenvalues and right eigenvectors of any square matrices. Results are always complex:
/// complex64 for float32 and shorter, complex128 for float64.
eig_result eig(const expr& a);

/// The eigenvalues alone.
tensor eigvals(const expr& a);

/// Which singular vectors are wanted, for matrices of shape (m, n).
enum class svd_vectors : std::uint8_t {
  full,     ///< all m columns of u and all n rows of vh
  reduced,  ///< those of the min(m, n) singular values
};

/// a = (u * s) vh. With `full`, only the first k columns of u and rows of vh take part.
struct svd_result {
  tensor u;   ///< (…, m, m) or (…, m, k): columns, orthonormal
  tensor s;   ///< (…, k) with k = min(m, n), real, descending
  tensor vh;  ///< (…, n, n) or (…, k, n): rows, orthonormal
};

/// The singular value decomposition.
svd_result svd(const expr& a, svd_vectors vectors = svd_vectors::full);

/// The singular values alone.
tensor svdvals(const expr& a);

}  // namespace shale
