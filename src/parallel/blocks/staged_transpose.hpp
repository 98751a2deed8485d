// Copies a large block and transposes it. Rows of the target are put together in memory that stays
// in the cache, and then each is stored as a whole.
//
// The rows of the target may be far apart. If they are stored line by line, each store misses the
// caches at a place that the processor cannot guess, and it can wait for few such stores at once. A
// long piece of a row is a stream that it recognises.
#pragma once

#include <algorithm>
#include <cstddef>

#include "parallel/blocks/transposed_block.hpp"
#include "shale/index.hpp"

namespace shale::parallel {

/// Smaller blocks may stay in a cache, and are no faster with this copy.
inline constexpr index_t staged_block_bytes_min = index_t{128} << 10;

/// The memory in which rows of the target are put together: 64 rows of 1 KiB, 32 of 2 KiB or 16 of
/// 4 KiB, each with one line more than it needs. Rows a power of two apart would share few cache
/// sets.
struct staged_rows {
  static constexpr index_t size_bytes = index_t{68} << 10;
  alignas(transposing::line_bytes) std::byte bytes[size_bytes];
};

/// Copies as copy_transposed does. `store(to, from, bytes)` stores a piece of a row of the target.
/// Nobody else may use `memory` meanwhile.
template <class Word, class Store>
void copy_transposed_staged(std::byte* to, index_t to_row, const std::byte* from,
                            index_t from_column, index_t columns, index_t rows, staged_rows& memory,
                            Store store) {
  using namespace transposing;
  constexpr auto width = static_cast<index_t>(sizeof(Word));
  constexpr index_t staged_bytes = staged_rows::size_bytes;
  // Rows are read by pairs of squares, so a piece is so short that a pair fits.
  constexpr index_t square_rows = 2 * side_of<Word>, read_columns = square_rows;
  constexpr index_t piece_bytes =
      std::min<index_t>(4096, (staged_bytes / square_rows / line_bytes - 1) * line_bytes);
  constexpr index_t piece_columns = piece_bytes / width;
  static_assert(staged_bytes / (piece_bytes + line_bytes) >= square_rows);
  std::byte* const staged = memory.bytes;
  for (index_t column = 0; column < columns; column += piece_columns) {
    const index_t count = std::min(piece_columns, columns - column);
    const index_t staged_row = ceil_div(count * width, line_bytes) * line_bytes + line_bytes;
    const index_t rows_max = staged_bytes / staged_row / square_rows * square_rows;
    for (index_t row = 0; row < rows; row += rows_max) {
      const index_t height = std::min(rows_max, rows - row);
      const std::byte* const source = from + row * width + column * from_column;
      for (index_t k = 0; k < count; k += read_columns)
        copy_transposed<Word>(staged + k * width, staged_row, source + k * from_column, from_column,
                              std::min(read_columns, count - k), height);
      for (index_t r = 0; r < height; ++r)
        store(to + (row + r) * to_row + column * width, staged + r * staged_row,
              static_cast<std::size_t>(count * width));
    }
  }
}

}  // namespace shale::parallel
