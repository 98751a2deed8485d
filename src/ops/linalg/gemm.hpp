// Multiplies two matrices on the calling thread. One tile of a matmul does this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "shale/dtype.hpp"
#include "shale/index.hpp"

namespace shale::ops {

/// A matrix in memory. Strides count elements.
struct matrix {
  std::byte* first;
  index_t rows;
  index_t columns;
  index_t row_stride;
  index_t column_stride;

  /// The block of `count_rows` x `count_columns` elements from (row, column) on.
  matrix block(index_t row, index_t count_rows, index_t column, index_t count_columns,
               std::size_t item_bytes) const;
};

/// Whether `multiply` can read a matrix in place: one axis has stride 1, and the other has a
/// positive stride. That stride is so large that rows (or columns) do not overlap. It is at most
/// 2^31 - 1, the largest number of BLAS. If this holds for a matrix, it holds for each block of it.
bool readable_in_place(const matrix& operand) noexcept;

/// Whether a copy of a matrix without gaps is stored column by column, so that `multiply` can read
/// it. The result is `preferred`, unless rows or columns would then lie too far apart for BLAS.
bool readable_by_columns(index_t rows, index_t columns, bool preferred) noexcept;

/// Whether a product replaces the elements of `out` or is added to them.
enum class product : std::uint8_t { replaces, adds };

/// out = a b, or out = out + a b. All three have one dtype: bool, an integer, float32, float64 or
/// complex. `out` has column stride 1, and at most 2^31 - 1 rows and columns; `a` and `b` are
/// readable in place. If rows of an `out` of floats are further apart than BLAS counts, takes the
/// memory of a copy of `out`.
/// Throws   out_of_memory (no buffer for BLAS), std::bad_alloc, unsupported (as check_blas_kernels)
void multiply(dtype type, const matrix& out, const matrix& a, const matrix& b, product mode);

/// The library with its version and kernels, such as "OpenBLAS 0.3.21, SkylakeX"; `blas_kernels`
/// says more.
/// Throws   as check_blas_kernels
std::string blas_description();

}  // namespace shale::ops
