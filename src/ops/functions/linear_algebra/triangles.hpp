// The triangles of column-major square matrices, n x n without gaps: factorizations store them, and
// `solve` and similar functions read them.
#pragma once

#include <algorithm>
#include <complex>
#include <string>

#include "core/enumerator.hpp"
#include "ops/functions/linear_algebra/matrix_operands.hpp"
#include "ops/linalg/lapack.hpp"
#include "ops/linalg/matrix_batch.hpp"
#include "shale/linear_systems.hpp"

namespace shale::ops {

/// Throws   invalid_argument (a value that the enumeration does not have)
inline lapack::part as_part(triangle part) {
  shale::detail::require_enumerator(part, triangle::upper, "triangle");
  return part == triangle::lower ? lapack::part::lower : lapack::part::upper;
}

/// The number, from 1, of the first zero on the diagonal, or 0.
template <class T>
lapack::integer first_zero_on_diagonal(lapack::integer n, const T* matrix) {
  for (index_t i = 0; i < n; ++i)
    if (matrix[i * n + i] == T(0)) return static_cast<lapack::integer>(i + 1);
  return 0;
}

/// Names an element of a diagonal in an error, such as "element (2, 2)". `number` counts from 1, as
/// LAPACK does; the text counts from 0, like axes and batches.
inline std::string diagonal_element(lapack::integer number) {
  const std::string position = std::to_string(number - 1);
  return "element (" + position + ", " + position + ")";
}

/// Throws an error about a matrix for which `first_zero_on_diagonal` returned a number.
[[noreturn]] inline void throw_zero_on_diagonal(const failed_matrix& failed,
                                                const held_matrices& a) {
  a.throw_about(failed, "a triangular matrix is singular",
                "its " + diagonal_element(failed.info) + " is zero");
}

/// Makes all elements 0 that are not in a triangle.
template <class T>
void clear_outside(triangle part, lapack::integer n, T* matrix) {
  for (index_t column = 0; column < n; ++column) {
    T* const first = matrix + column * n;
    if (part == triangle::lower) std::fill(first, first + column, T(0));
    else std::fill(first + column + 1, first + n, T(0));
  }
}

/// Makes a triangular factor 0 behind its rank: the columns of a lower triangle, or the rows of an
/// upper one, from number `rank` on.
template <class T>
void clear_behind(triangle part, index_t n, index_t rank, T* matrix) {
  if (part == triangle::lower) {
    std::fill(matrix + rank * n, matrix + n * n, T(0));
    return;
  }
  for (index_t column = 0; column < n; ++column)
    std::fill(matrix + column * n + std::min(rank, column + 1), matrix + (column + 1) * n, T(0));
}

/// Fills the other triangle of a Hermitian matrix.
template <class T>
void mirror(triangle part, lapack::integer n, T* matrix) {
  for (index_t column = 0; column < n; ++column)
    for (index_t row = column + 1; row < n; ++row) {
      T& below = matrix[column * n + row];
      T& above = matrix[row * n + column];
      T& made = part == triangle::lower ? above : below;
      const T& given = part == triangle::lower ? below : above;
      if constexpr (lapack::is_complex<T>) made = std::conj(given);
      else made = given;
    }
}

}  // namespace shale::ops
