// Tests blocks of every width and extent. The oracle is a loop over elements.
#include "parallel/blocks/transposed_block.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "parallel/blocks/block_copy.hpp"
#include "parallel/blocks/nontemporal_copy.hpp"
#include "parallel/blocks/staged_transpose.hpp"

namespace shale::parallel {
namespace {

struct pair_of_words {
  std::uint64_t first, second;
};

template <class Word>
class TransposedBlock : public testing::Test {};
using words =
    testing::Types<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, pair_of_words>;
TYPED_TEST_SUITE(TransposedBlock, words);

// Copies a block from columns that stand forwards or backwards, and compares all bytes.
template <class Word, class Copy>
void expect_transposed(index_t rows, index_t columns, Copy copy) {
  constexpr index_t width = sizeof(Word);
  std::mt19937_64 random(1);
  const index_t from_column = rows * width + 24;  // bytes between elements that become neighbours
  const index_t to_row = columns * width + 40;
  std::vector<std::byte> from(static_cast<std::size_t>(columns * from_column));
  for (auto& each : from) each = static_cast<std::byte>(random());
  for (const bool backwards : {false, true}) {
    std::vector<std::byte> to(static_cast<std::size_t>(rows * to_row), std::byte{0x5a});
    std::vector<std::byte> expected = to;
    for (index_t row = 0; row < rows; ++row)
      for (index_t column = 0; column < columns; ++column)
        std::memcpy(&expected[static_cast<std::size_t>(row * to_row + column * width)],
                    &from[static_cast<std::size_t>(
                        row * width + (backwards ? columns - 1 - column : column) * from_column)],
                    sizeof(Word));
    copy(to.data(), to_row, from.data() + (backwards ? columns - 1 : 0) * from_column,
         backwards ? -from_column : from_column, columns, rows);
    EXPECT_EQ(to, expected) << rows << " x " << columns << (backwards ? ", backwards" : "");
  }
}

TYPED_TEST(TransposedBlock, MovesEveryElementAndTouchesNoOther) {
  for (const index_t rows : {1, 3, 31, 64, 65, 130, 193})
    for (const index_t columns : {1, 5, 63, 64, 70, 129})
      expect_transposed<TypeParam>(rows, columns, copy_transposed<TypeParam>);
}

// Rows are shorter and longer than the piece of a row that is staged, and all rows fit in the
// staged memory or not.
TYPED_TEST(TransposedBlock, MayBeStoredRowByRow) {
  const auto memory = std::make_unique<staged_rows>();
  const auto store = [](std::byte* to, const std::byte* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
  };
  for (const index_t rows : {1, 15, 16, 61, 200})
    for (const index_t columns : {1, 33, 256, 700, 4100})
      expect_transposed<TypeParam>(rows, columns, [&](auto... block) {
        copy_transposed_staged<TypeParam>(block..., *memory, store);
      });
}

// Both kernels take blocks that are staged and blocks that are not.
TYPED_TEST(TransposedBlock, IsCopiedByKernels) {
  for (const auto make : {copy_kernel, copy_kernel_past_the_cache})
    for (const index_t rows : {7, 401})
      expect_transposed<TypeParam>(rows, 702,
                                   [&](std::byte* to, index_t to_row, const std::byte* from,
                                       index_t from_column, index_t columns, index_t count) {
                                     std::byte* const data[] = {to, const_cast<std::byte*>(from)};
                                     constexpr index_t width = sizeof(TypeParam);
                                     const index_t strides[] = {width, from_column, to_row, width};
                                     make(sizeof(TypeParam))(data, strides, columns, count);
                                     order_nontemporal_stores();
                                   });
}

}  // namespace
}  // namespace shale::parallel
