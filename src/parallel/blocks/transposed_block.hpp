// Copies a block and transposes it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "shale/index.hpp"

namespace shale::parallel {

namespace transposing {

inline constexpr std::size_t vector_bytes = 16;
inline constexpr index_t line_bytes = 64;

/// As many words as every processor's vectors hold.
template <class Word>
struct vector_of {
  typedef Word type __attribute__((vector_size(vector_bytes)));
};
template <class Word>
using vector = typename vector_of<Word>::type;

/// Takes the words of the first or second half of `a` and of `b` in turns.
template <bool second, class Vector, std::size_t... place>
Vector interleaved(Vector a, Vector b, std::index_sequence<place...>) {
  constexpr std::size_t count = sizeof...(place), first = second ? count / 2 : 0;
  return __builtin_shufflevector(
      a, b, static_cast<int>(first + place / 2 + (place % 2 == 0 ? 0 : count))...);
}

/// Transposes a square of vectors. Each step interleaves vector i with vector i + n/2; after
/// log2(n) steps every vector is a column.
template <class Vector, std::size_t count>
void transpose(Vector (&rows)[count]) {
  constexpr auto places = std::make_index_sequence<count>();
  for (std::size_t step = 1; step < count; step *= 2) {
    Vector next[count];
    for (std::size_t i = 0; i < count / 2; ++i) {
      next[2 * i] = interleaved<false>(rows[i], rows[i + count / 2], places);
      next[2 * i + 1] = interleaved<true>(rows[i], rows[i + count / 2], places);
    }
    std::copy(next, next + count, rows);
  }
}

/// Writes the transpose of `lines`, a square of words without gaps, to rows `to_row` bytes apart.
template <class Word, index_t side>
void store_transposed(std::byte* to, index_t to_row, const Word (&lines)[side][side]) {
  constexpr auto words = static_cast<index_t>(vector_bytes / sizeof(Word));
  vector<Word> square[words];
  for (index_t row = 0; row < side; row += words)
    for (index_t column = 0; column < side; column += words) {
      for (index_t k = 0; k < words; ++k)
        std::memcpy(&square[k], &lines[column + k][row], vector_bytes);
      transpose(square);
      for (index_t k = 0; k < words; ++k)
        std::memcpy(to + (row + k) * to_row + column * static_cast<index_t>(sizeof(Word)),
                    &square[k], vector_bytes);
    }
}

}  // namespace transposing

/// Copies the element (row, column) from `from + row * sizeof(Word) + column * from_column` to
/// `to + row * to_row + column * sizeof(Word)`. Strides are in bytes.
///
/// The block is cut into squares whose side is one cache line, at least 4 elements. A square is
/// read into a small array by whole lines, and written from there, transposed, by whole lines. So
/// each cache line of the source is read only once. A simple double loop would come back to it for
/// the next column; if the columns are a power of two apart, they fall into the same cache sets and
/// have evicted each other by then. The lines of the next square are prefetched, because they are
/// too far apart for the processor to guess them.
template <class Word>
void copy_transposed(std::byte* to, index_t to_row, const std::byte* from, index_t from_column,
                     index_t columns, index_t rows) {
  constexpr auto width = static_cast<index_t>(sizeof(Word));
  constexpr index_t side = std::max<index_t>(4, transposing::line_bytes / width);
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
      alignas(64) Word lines[side][side];
      for (index_t c = 0; c < side; ++c) {
        std::memcpy(lines[c], source + c * from_column, sizeof lines[c]);
        __builtin_prefetch(source + (c + side) * from_column);
      }
      if constexpr (sizeof(Word) < transposing::vector_bytes) {
        transposing::store_transposed<Word, side>(target, to_row, lines);
      } else {
        for (index_t r = 0; r < side; ++r)
          for (index_t c = 0; c < side; ++c)
            std::memcpy(target + r * to_row + c * width, &lines[c][r], sizeof(Word));
      }
    }
  }
}

}  // namespace shale::parallel
