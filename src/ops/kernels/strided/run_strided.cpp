#include "ops/kernels/strided/run_strided.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "parallel/blocks/transposed_block.hpp"

namespace shale::ops::kernels {

namespace {

struct pair_of_words {
  std::uint64_t first, second;
};

// Copies one element. memcpy may access memory of any declared type.
template <class Word>
void copy_element(std::byte* to, const std::byte* from) {
  std::memcpy(to, from, sizeof(Word));
}

// Copies every second word. The compiler vectorises a loop over numbers, but not one over bytes.
template <class Word>
void pack_every_second(std::byte* to, const std::byte* from, index_t count) {
  typedef Word any_word __attribute__((may_alias, aligned(1)));
  auto* const out = reinterpret_cast<any_word*>(to);
  const auto* const in = reinterpret_cast<const any_word*>(from);
  for (index_t i = 0; i < count; ++i) out[i] = in[2 * i];
}

template <class Word>
void pack_words(std::byte* to, const std::byte* from, index_t inner_stride, index_t outer_stride,
                index_t columns, index_t rows) {
  constexpr auto width = static_cast<index_t>(sizeof(Word));
  if (outer_stride == width && inner_stride != width && inner_stride != 0)
    return parallel::copy_transposed<Word>(to, columns * width, from, inner_stride, columns, rows);
  for (index_t row = 0; row < rows; ++row, from += outer_stride, to += columns * width) {
    if (inner_stride == width) {
      std::memcpy(to, from, static_cast<std::size_t>(columns * width));
    } else if (inner_stride == 0) {
      Word value;
      std::memcpy(&value, from, sizeof(Word));
      for (index_t column = 0; column < columns; ++column)
        std::memcpy(to + column * width, &value, sizeof(Word));
    } else if (std::is_integral_v<Word> && inner_stride == 2 * width) {
      if constexpr (std::is_integral_v<Word>) pack_every_second<Word>(to, from, columns);
    } else {
      for (index_t column = 0; column < columns; ++column)
        copy_element<Word>(to + column * width, from + column * inner_stride);
    }
  }
}

template <class Word>
void unpack_words(std::byte* to, const std::byte* from, index_t inner_stride, index_t outer_stride,
                  index_t columns, index_t rows) {
  constexpr auto width = static_cast<index_t>(sizeof(Word));
  for (index_t row = 0; row < rows; ++row, to += outer_stride, from += columns * width)
    for (index_t column = 0; column < columns; ++column)
      copy_element<Word>(to + column * inner_stride, from + column * width);
}

// Calls `function` with the std::type_identity of a word of `width` bytes.
template <class Function>
void with_word_of(index_t width, Function function) {
  switch (width) {
    case 1:
      return function(std::type_identity<std::uint8_t>());
    case 2:
      return function(std::type_identity<std::uint16_t>());
    case 4:
      return function(std::type_identity<std::uint32_t>());
    case 8:
      return function(std::type_identity<std::uint64_t>());
    default:
      return function(std::type_identity<pair_of_words>());
  }
}

// One operand of a run. `block` is its memory for packed elements.
struct operand {
  std::byte* first;
  index_t inner_stride;
  index_t outer_stride;
  index_t width;
  std::byte* block;

  bool dense_row() const { return inner_stride == width; }
  bool dense(index_t columns) const { return dense_row() && outer_stride == columns * width; }
  bool constant() const { return inner_stride == 0 && outer_stride == 0; }
};

}  // namespace

void pack(std::byte* to, const std::byte* from, index_t width, index_t inner_stride,
          index_t outer_stride, index_t columns, index_t rows) {
  with_word_of(width, [&]<class Word>(std::type_identity<Word>) {
    pack_words<Word>(to, from, inner_stride, outer_stride, columns, rows);
  });
}

void unpack(std::byte* to, const std::byte* from, index_t width, index_t inner_stride,
            index_t outer_stride, index_t columns, index_t rows) {
  with_word_of(width, [&]<class Word>(std::type_identity<Word>) {
    unpack_words<Word>(to, from, inner_stride, outer_stride, columns, rows);
  });
}

void run_strided(const loop_shape& loop, std::byte* const* data, const index_t* strides_bytes,
                 index_t inner, index_t outer) {
  const int count = loop.operands;
  alignas(64) std::byte blocks[kernel_operands_max][block_bytes];
  operand operands[kernel_operands_max];
  index_t widest = 1;
  for (int k = 0; k < count; ++k) {
    operands[k] = {data[k], strides_bytes[k], strides_bytes[count + k], loop.widths[k], blocks[k]};
    widest = std::max(widest, operands[k].width);
  }
  const index_t most = block_bytes / widest;

  // A piece is a part of one row, or several whole rows if they are short.
  const index_t columns = std::min(inner, most);
  const index_t rows = columns < inner ? 1 : std::min(outer, std::max<index_t>(1, most / inner));

  // An operand that is a single element is repeated once for all pieces.
  for (int k = 1; k < count; ++k)
    if (operands[k].constant())
      pack(operands[k].block, operands[k].first, operands[k].width, 0, 0, columns * rows, 1);

  std::byte* pieces[kernel_operands_max];
  for (index_t row = 0; row < outer; row += rows) {
    const index_t piece_rows = std::min(rows, outer - row);
    for (index_t column = 0; column < inner; column += columns) {
      const index_t piece_columns = std::min(columns, inner - column);
      bool scatters = false;
      for (int k = 0; k < count; ++k) {
        operand& current = operands[k];
        std::byte* address =
            current.first + row * current.outer_stride + column * current.inner_stride;
        if (current.dense_row() && (piece_rows == 1 || current.dense(inner))) {
          pieces[k] = address;
          continue;
        }
        pieces[k] = current.block;
        if (k == 0) scatters = true;
        else if (!current.constant() &&
                 !(current.inner_stride == 0 && piece_rows == 1 && column != 0))
          pack(current.block, address, current.width, current.inner_stride, current.outer_stride,
               piece_columns, piece_rows);
      }
      loop.run(pieces, piece_columns * piece_rows);
      if (scatters) {
        const operand& out = operands[0];
        unpack(out.first + row * out.outer_stride + column * out.inner_stride, out.block, out.width,
               out.inner_stride, out.outer_stride, piece_columns, piece_rows);
      }
    }
  }
}

}  // namespace shale::ops::kernels
