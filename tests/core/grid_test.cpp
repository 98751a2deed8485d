// Tests where the boxes of a grid lie if they follow each other.
#include "core/grid.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace shale {
namespace {

// The end of the piece that begins at `at`, along an axis that is cut at the multiples of `step`.
index_t end_of_piece(index_t at, index_t step, index_t end) {
  return std::min(end, (at / step + 1) * step);
}

// The boxes are visited one after the other, and their elements are counted.
TEST(Grid, CountsTheElementsBeforeEachBox) {
  std::mt19937 random(4);
  const auto below = [&](index_t n) { return static_cast<index_t>(random()) % n; };
  for (int turn = 0; turn < 300; ++turn) {
    const region whole{{below(9), below(9), below(9)}, {1 + below(9), 1 + below(9), 1 + below(9)}};
    const index_t steps[] = {1 + below(5), 1 + below(5), 1 + below(12)};
    const auto end = [&](index_t axis) { return whole.start[axis] + whole.shape[axis]; };
    index_t before = 0;
    index_t next[3];
    for (index_t i = whole.start[0]; i < end(0); i = next[0]) {
      next[0] = end_of_piece(i, steps[0], end(0));
      for (index_t j = whole.start[1]; j < end(1); j = next[1]) {
        next[1] = end_of_piece(j, steps[1], end(1));
        for (index_t k = whole.start[2]; k < end(2); k = next[2]) {
          next[2] = end_of_piece(k, steps[2], end(2));
          const region box{{i, j, k}, {next[0] - i, next[1] - j, next[2] - k}};
          ASSERT_EQ(detail::elements_before(whole, box), before) << to_string(box);
          before += (next[0] - i) * (next[1] - j) * (next[2] - k);
        }
      }
    }
    ASSERT_EQ(before, whole.shape[0] * whole.shape[1] * whole.shape[2]);
  }
}

TEST(Grid, HasOneBoxWithoutAxes) { EXPECT_EQ(detail::elements_before(region{}, region{}), 0); }

}  // namespace
}  // namespace shale
