// The LU factors of batches of matrices, and the treatment of matrices with NaN.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>

#include "ops/functions/linear_algebra/matrix_operands.hpp"
#include "ops/linalg/lapack.hpp"
#include "ops/linalg/matrix_batch.hpp"

namespace shale::ops {

template <class T>
constexpr T not_a_number() {
  using R = lapack::real_of<T>;
  constexpr R part = std::numeric_limits<R>::quiet_NaN();
  if constexpr (lapack::is_complex<T>) return {part, part};
  else return part;
}

/// Fills a matrix with NaN if one of its elements is NaN. Returns whether it did.
///
/// The search for pivots compares magnitudes. With NaN, its outcome differs between the kernels of
/// OpenBLAS, and some lose the NaN. So functions whose results are NaN for such a matrix call this
/// first, and do not factor the matrix if it returns true.
template <class T>
bool filled_with_nan(T* matrix, index_t count) {
  const bool found = std::any_of(matrix, matrix + count, [](T value) { return value != value; });
  if (found) std::fill_n(matrix, count, not_a_number<T>());
  return found;
}

/// The LU factors of a matrix, in work memory.
template <class T>
struct lu_of_matrix {
  index_t number;                 ///< of the matrix, in its batch
  const T* packed;                ///< column-major without gaps: u, and l below its diagonal
  const lapack::integer* pivots;  ///< row i was exchanged with row pivots[i] - 1
  bool singular;                  ///< a pivot is zero
};

/// Calls `take(factors)` with the lu_of_matrix of every matrix. Before a matrix is factored,
/// `is_left_out(elements, count)` is called, which may change its elements. If it returns true, the
/// matrix is not factored, and no rows are exchanged. `multiplications` are those for each matrix,
/// roughly.
/// Throws   as for_each_matrix
template <class T, class LeftOut, class Take>
void for_each_lu(const held_matrices& a, executor& on, double multiplications, LeftOut is_left_out,
                 Take take) {
  const matrix_batch from(a.elements);
  const lapack::integer rows = from.rows(), columns = from.columns();
  const lapack::integer pivot_count = std::min(rows, columns);
  work_parts parts;
  const std::size_t packed_at = parts.add<T>(index_t{rows} * columns);
  const std::size_t pivots_at = parts.add<lapack::integer>(pivot_count);
  const batch_work work{from.count(), parts.bytes(), multiplications, a.bytes()};
  for_each_matrix(work, on, [&](index_t number, std::byte* memory) {
    T* const packed = part_at<T>(memory, packed_at);
    auto* const pivots = part_at<lapack::integer>(memory, pivots_at);
    from.load(number, packed);
    std::iota(pivots, pivots + pivot_count, 1);
    const bool is_factored = pivot_count > 0 && !is_left_out(packed, index_t{rows} * columns);
    const bool singular = is_factored && lapack::getrf(rows, columns, packed, rows, pivots) != 0;
    take(lu_of_matrix<T>{number, packed, pivots, singular});
    return lapack::integer{0};
  });
  a.elements.storage().check();
}

}  // namespace shale::ops
