// How tall matrices are cut into blocks of rows. Blocks depend on the shapes alone (tall.1).
#pragma once

#include "shale/index.hpp"

namespace shale::ops {

/// How the rows of a matrix are cut.
struct row_blocks {
  index_t rows;
  index_t columns;
  index_t width;  ///< the columns of the factored matrix
  index_t block;  ///< rows of a block; the last one may have fewer

  /// No extent of the matrix is 0.
  row_blocks(index_t row_count, index_t column_count, index_t factored_width);

  index_t count() const noexcept { return ceil_div(rows, block); }
  index_t rows_of(index_t number) const noexcept;

  /// The number of rows of a block, including the rows of zeros.
  index_t height_of(index_t number) const noexcept;

  /// The rows of a triangle, and the columns of q.
  index_t rank() const noexcept;
};

}  // namespace shale::ops
