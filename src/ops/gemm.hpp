// The product of two matrices, on the calling thread: what one tile of a matmul runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "shale/dtype.hpp"
#include "shale/index.hpp"

namespace shale::ops {

/// A matrix in memory; strides in elements.
struct matrix {
  std::byte* first;
  index_t rows;
  index_t columns;
  index_t row_stride;
  index_t column_stride;

  /// `count_rows` x `count_columns` elements from (row, column) on.
  matrix block(index_t row, index_t count_rows, index_t column, index_t count_columns,
               std::size_t item_bytes) const;
};

/// Whether `multiply` can read a matrix where it lies: unit stride along one axis, and rows (or
/// columns) that follow one another forwards without overlap.
bool readable_in_place(const matrix& which) noexcept;

/// What becomes of what `out` held.
enum class product : std::uint8_t { replaces, adds };

/// out = a b, or out = out + a b. All of one dtype: bool, integers, float32, float64 or complex.
/// `out` has unit column stride; `a` and `b` are readable in place.
void multiply(dtype type, const matrix& out, const matrix& a, const matrix& b, product how);

/// "OpenBLAS 0.3.21, SkylakeX".
std::string blas_description();

}  // namespace shale::ops
