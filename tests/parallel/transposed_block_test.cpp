// Tests blocks of every width and extent. The oracle is a loop over elements.
#include "parallel/blocks/transposed_block.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
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

// Copies blocks of many extents, from columns that stand forwards or backwards, and compares all
// bytes. The target begins at a line, and so do its rows if `lines`.
template <class Word, class Store>
void expect_transposed(bool lines) {
  constexpr index_t width = sizeof(Word), line = 64;
  std::mt19937_64 random(1);
  for (const index_t rows : {1, 3, 31, 64, 65, 130, 193}) {
    for (const index_t columns : {1, 5, 63, 64, 70, 129}) {
      const index_t from_column =
          rows * width + 24;  // bytes between elements that become neighbours
      const index_t to_row = lines ? (columns * width / line + 2) * line : columns * width + 40;
      std::vector<std::byte> from(static_cast<std::size_t>(columns * from_column));
      for (auto& each : from) each = static_cast<std::byte>(random());
      struct alignas(line) cache_line {
        std::byte bytes[line];
      };
      std::vector<cache_line> to(static_cast<std::size_t>(rows * to_row / line + 1));
      auto* const target = reinterpret_cast<std::byte*>(to.data());
      const std::size_t bytes = to.size() * line;
      for (const bool backwards : {false, true}) {
        std::memset(target, 0x5a, bytes);
        std::vector<std::byte> expected(target, target + bytes);
        for (index_t row = 0; row < rows; ++row)
          for (index_t column = 0; column < columns; ++column)
            for (index_t byte = 0; byte < width; ++byte)
              expected[static_cast<std::size_t>(row * to_row + column * width + byte)] =
                  from[static_cast<std::size_t>(
                      row * width + (backwards ? columns - 1 - column : column) * from_column +
                      byte)];
        copy_transposed<Word, Store>(target, to_row,
                                     from.data() + (backwards ? columns - 1 : 0) * from_column,
                                     backwards ? -from_column : from_column, columns, rows);
        EXPECT_EQ(std::vector<std::byte>(target, target + bytes), expected)
            << rows << " x " << columns << (backwards ? ", backwards" : "");
      }
    }
  }
}

TYPED_TEST(TransposedBlock, MovesEveryElementAndTouchesNoOther) {
  expect_transposed<TypeParam, transposing::cached_line>(false);
}

TYPED_TEST(TransposedBlock, MayBeStoredPastTheCache) {
  expect_transposed<TypeParam, transposing::nontemporal_line>(true);
}

}  // namespace
}  // namespace shale::parallel
