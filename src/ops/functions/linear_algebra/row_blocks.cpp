#include "ops/functions/linear_algebra/row_blocks.hpp"

#include <algorithm>

#include "ops/linalg/lapack.hpp"

namespace shale::ops {

namespace {

/// A block has about this many elements, unless the factored matrix is so wide that it needs more.
constexpr index_t elements_in_block = index_t{1} << 18;

/// A block has at least this many rows for each column of the factored matrix. With a lower number,
/// the matrices that are kept for blocks would be nearly as large as the operand.
constexpr index_t rows_by_width = 4;

}  // namespace

row_blocks::row_blocks(index_t row_count, index_t column_count, index_t factored_width)
    : rows(row_count),
      columns(lapack::integer_of(column_count)),
      width(factored_width),
      block(std::min(rows, std::max(rows_by_width * width, elements_in_block / columns))) {}

index_t row_blocks::rows_of(index_t number) const noexcept {
  return std::min(block, rows - number * block);
}

index_t row_blocks::height_of(index_t number) const noexcept {
  return count() > 1 ? std::max(rows_of(number), width) : rows;
}

index_t row_blocks::rank() const noexcept { return std::min(rows, width); }

}  // namespace shale::ops
