// Tests blocks of every width and extent. The oracle is a loop over elements.
#include "parallel/blocks/transposed_block.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

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

TYPED_TEST(TransposedBlock, MovesEveryElementAndTouchesNoOther) {
  constexpr index_t width = sizeof(TypeParam);
  std::mt19937_64 random(1);
  for (const index_t rows : {1, 3, 31, 64, 65, 130}) {
    for (const index_t columns : {1, 5, 63, 64, 70, 129}) {
      const index_t from_column =
          rows * width + 24;  // bytes between elements that become neighbours
      const index_t to_row = columns * width + 40;
      std::vector<std::byte> from(static_cast<std::size_t>(columns * from_column));
      for (auto& each : from) each = static_cast<std::byte>(random());
      std::vector<std::byte> to(static_cast<std::size_t>(rows * to_row), std::byte{0x5a});
      std::vector<std::byte> expected = to;
      for (index_t row = 0; row < rows; ++row)
        for (index_t column = 0; column < columns; ++column)
          for (index_t byte = 0; byte < width; ++byte)
            expected[static_cast<std::size_t>(row * to_row + column * width + byte)] =
                from[static_cast<std::size_t>(row * width + column * from_column + byte)];
      copy_transposed<TypeParam>(to.data(), to_row, from.data(), from_column, columns, rows);
      EXPECT_EQ(to, expected) << rows << " x " << columns;

      // The columns are read backwards.
      for (index_t row = 0; row < rows; ++row)
        for (index_t column = 0; column < columns; ++column)
          for (index_t byte = 0; byte < width; ++byte)
            expected[static_cast<std::size_t>(row * to_row + column * width + byte)] =
                from[static_cast<std::size_t>(row * width + (columns - 1 - column) * from_column +
                                              byte)];
      copy_transposed<TypeParam>(to.data(), to_row, from.data() + (columns - 1) * from_column,
                                 -from_column, columns, rows);
      EXPECT_EQ(to, expected) << rows << " x " << columns << ", backwards";
    }
  }
}

}  // namespace
}  // namespace shale::parallel
