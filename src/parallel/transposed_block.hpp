// Copying a block whose rows are columns of what it is copied from.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "shale/index.hpp"

namespace shale::parallel {

/// Element (row, column) goes from `from + row * sizeof(Word) + column * from_column` to
/// `to + row * to_row + column * sizeof(Word)`; strides in bytes. A line of the cache at a time on
/// both sides: where columns are a power of two apart they evict each other, and a line that was
/// left for the next column would be gone by then.
template <class Word>
void copy_transposed(std::byte* to, index_t to_row, const std::byte* from, index_t from_column,
                     index_t columns, index_t rows) {
  constexpr auto width = static_cast<index_t>(sizeof(Word));
  constexpr index_t side = std::max<index_t>(4, 64 / width);
  for (index_t row = 0; row < rows; row += side) {
    const index_t some_rows = std::min(side, rows - row);
    for (index_t column = 0; column < columns; column += side) {
      const index_t some_columns = std::min(side, columns - column);
      const std::byte* const source = from + row * width + column * from_column;
      std::byte* const target = to + row * to_row + column * width;
      if (some_rows < side || some_columns < side) {
        for (index_t r = 0; r < some_rows; ++r)
          for (index_t c = 0; c < some_columns; ++c)
            std::memcpy(target + r * to_row + c * width, source + r * width + c * from_column,
                        sizeof(Word));
        continue;
      }
      Word lines[side][side];
      for (index_t c = 0; c < side; ++c)
        std::memcpy(lines[c], source + c * from_column, sizeof lines[c]);
      for (index_t r = 0; r < side; ++r) {
        Word line[side];
        for (index_t c = 0; c < side; ++c) line[c] = lines[c][r];
        std::memcpy(target + r * to_row, line, sizeof line);
      }
    }
  }
}

}  // namespace shale::parallel
