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

/// The words of a cache line, but at least 4, and at most the side of the plan's squares.
template <class Word>
inline constexpr index_t side_of = std::clamp<index_t>(line_bytes /
                                                           static_cast<index_t>(sizeof(Word)),
                                                       4, 32);

/// Writes the transpose of a square of words to rows `to_row` bytes apart, line by line. `lines`
/// are its columns; they lie `wide` sides apart.
template <class Word, index_t wide>
void store_transposed(std::byte* to, index_t to_row, const Word* lines) {
  constexpr index_t side = side_of<Word>, column_words = wide * side;
  if constexpr (sizeof(Word) < vector_bytes) {
    constexpr auto words = static_cast<index_t>(vector_bytes / sizeof(Word));
    vector<Word> square[words];
    for (index_t row = 0; row < side; row += words) {
      alignas(64) Word rows[words][side];
      for (index_t column = 0; column < side; column += words) {
        for (index_t k = 0; k < words; ++k)
          std::memcpy(&square[k], lines + (column + k) * column_words + row, vector_bytes);
        transpose(square);
        for (index_t k = 0; k < words; ++k) std::memcpy(&rows[k][column], &square[k], vector_bytes);
      }
      for (index_t k = 0; k < words; ++k)
        std::memcpy(to + (row + k) * to_row, rows[k], sizeof rows[k]);
    }
  } else {
    for (index_t row = 0; row < side; ++row) {
      alignas(64) Word words[side];
      for (index_t column = 0; column < side; ++column)
        std::memcpy(&words[column], &lines[column * column_words + row], sizeof(Word));
      std::memcpy(to + row * to_row, words, sizeof words);
    }
  }
}

/// Transposes `wide` squares that follow each other in the rows of the target, for all columns.
/// Returns the columns that were copied.
template <class Word, index_t wide>
index_t copy_squares(std::byte* to, index_t to_row, const std::byte* from, index_t from_column,
                     index_t columns) {
  constexpr auto width = static_cast<index_t>(sizeof(Word));
  constexpr index_t side = side_of<Word>;
  index_t column = 0;
  for (; column + side <= columns; column += side) {
    const std::byte* const source = from + column * from_column;
    alignas(64) Word lines[side][wide * side];
    for (index_t c = 0; c < side; ++c) {
      std::memcpy(lines[c], source + c * from_column, sizeof lines[c]);
      for (index_t line = 0; line < wide; ++line)
        __builtin_prefetch(source + (c + side) * from_column + line * line_bytes);
    }
    for (index_t k = 0; k < wide; ++k)
      store_transposed<Word, wide>(to + k * side * to_row + column * width, to_row,
                                   &lines[0][k * side]);
  }
  return column;
}

}  // namespace transposing

/// Copies the element (row, column) from `from + row * sizeof(Word) + column * from_column` to
/// `to + row * to_row + column * sizeof(Word)`. Strides are in bytes.
///
/// The block is cut into squares whose side is one cache line, but 4 to 32 elements. A square is
/// read into a small array by whole lines, and written from there, transposed, by whole lines. So
/// each cache line of the source is read only once. A simple double loop would come back to it for
/// the next column; if the columns are a power of two apart, they fall into the same cache sets and
/// have evicted each other by then. Two squares are read together, because processors fetch lines
/// in pairs. The lines of the next squares are prefetched, because they are too far apart for the
/// processor to guess them.
template <class Word>
void copy_transposed(std::byte* to, index_t to_row, const std::byte* from, index_t from_column,
                     index_t columns, index_t rows) {
  constexpr auto width = static_cast<index_t>(sizeof(Word));
  constexpr index_t side = transposing::side_of<Word>;
  for (index_t row = 0; row < rows;) {
    const std::byte* const source = from + row * width;
    std::byte* const target = to + row * to_row;
    index_t height = std::min(side, rows - row), done = 0;
    if (row + 2 * side <= rows) {
      height = 2 * side;
      done = transposing::copy_squares<Word, 2>(target, to_row, source, from_column, columns);
    } else if (height == side) {
      done = transposing::copy_squares<Word, 1>(target, to_row, source, from_column, columns);
    }
    for (index_t r = 0; r < height; ++r)
      for (index_t c = done; c < columns; ++c)
        std::memcpy(target + r * to_row + c * width, source + r * width + c * from_column,
                    sizeof(Word));
    row += height;
  }
}

}  // namespace shale::parallel
