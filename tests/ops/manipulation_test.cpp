// Tests turns and grids. The oracles find each element by its coordinates. (expr_test.cpp tests
// joins and repetitions.)
#include "shale/manipulation.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "shale/creation.hpp"
#include "shale/error.hpp"
#include "support/coordinates.hpp"
#include "support/failures.hpp"
#include "support/random_tensors.hpp"

namespace shale {
namespace {

using test::as_list;
using test::code_of;
using test::coordinates_of;
using test::count_of;
using test::elements_of;
using test::index_list;
using test::number_of;
using test::random_choices;

/// One quarter of a turn from axis `from` towards axis `to`: what was at (i, j) comes to
/// (extent - 1 - j, i).
tensor turned_once(const tensor& values, index_t from, index_t to) {
  const auto a = static_cast<std::size_t>(from), b = static_cast<std::size_t>(to);
  const index_list shape = as_list(values.shape());
  index_list turned = shape;
  std::swap(turned[a], turned[b]);
  const auto elements = elements_of<std::int32_t>(values);
  std::vector<std::int32_t> result(elements.size());
  for (index_t number = 0; number < count_of(shape); ++number) {
    const index_list at = coordinates_of(number, shape);
    index_list moved = at;
    moved[a] = shape[b] - 1 - at[b];
    moved[b] = at[a];
    result[number_of(moved, turned)] = elements[static_cast<std::size_t>(number)];
  }
  const tensor made = tensor::empty(dims(turned), dtype::int32);
  std::copy(result.begin(), result.end(), made.elements<std::int32_t>().begin());
  return made;
}

TEST(Rot90, TurnsTheFirstAxisTowardsTheSecond) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    dims shape = test::random_shape(choose, {.axes_max = 4});
    while (shape.size() < 2) shape.push_back(choose(1, 5));
    const tensor values = test::random_tensor<std::int32_t>(choose, shape);
    const index_t from = choose(0, shape.size() - 1);
    const index_t to = (from + choose(1, shape.size() - 1)) % shape.size();
    tensor wanted = values;
    for (index_t times = 0; times < 4; ++times) {
      for (const index_t turns : {times, times - 4, times + 4000}) {
        const expr made = rot90(values, turns, from - shape.size(), to);
        ASSERT_EQ(made.shape(), wanted.shape());
        ASSERT_EQ(elements_of<std::int32_t>(eval(made)), elements_of<std::int32_t>(wanted));
      }
      wanted = turned_once(wanted, from, to);
    }
  }
  const expr x = zeros({2, 3});
  EXPECT_EQ(code_of([&] { rot90(x, 1, 1, -1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { rot90(x, 0, 0, 2); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { rot90(zeros({2})); }), errc::invalid_argument);
}

TEST(Concat, RefusesMoreElementsThanThereCanBe) {
  const expr half = full({index_t{1} << 31, index_t{1} << 31}, 1);
  EXPECT_EQ(concat(std::vector<expr>{half}, 0).shape(), half.shape());
  for (const index_t axis : {0, 1})
    EXPECT_EQ(code_of([&] {
                concat(std::vector<expr>{half, half}, axis);
              }),
              errc::invalid_argument);
}

TEST(Meshgrid, HasACoordinateOfEachPosition) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    std::vector<expr> arrays;
    std::vector<std::vector<double>> lines;
    index_list shape;
    const index_t count = choose(0, 4);
    for (index_t k = 0; k < count; ++k) {
      const dims extent = choose(0, 5) == 0 ? dims{} : dims{choose(0, 5)};
      const tensor values = test::random_tensor<double>(choose, extent);
      arrays.emplace_back(values);
      lines.push_back(elements_of<double>(values));
      shape.push_back(values.size());
    }
    for (const grid_indexing indexing : {grid_indexing::ij, grid_indexing::xy}) {
      const auto grids = meshgrid(arrays, indexing);
      ASSERT_EQ(grids.size(), arrays.size());
      const bool swaps = indexing == grid_indexing::xy && count > 1;
      index_list wanted_shape = shape;
      if (swaps) std::swap(wanted_shape[0], wanted_shape[1]);
      for (std::size_t k = 0; k < grids.size(); ++k) {
        ASSERT_EQ(as_list(grids[k].shape()), wanted_shape);
        std::vector<double> wanted;
        for (index_t number = 0; number < count_of(wanted_shape); ++number) {
          const index_list at = coordinates_of(number, wanted_shape);
          const std::size_t axis = swaps && k < 2 ? 1 - k : k;
          wanted.push_back(lines[k][static_cast<std::size_t>(at[axis])]);
        }
        ASSERT_EQ(elements_of<double>(eval(grids[k])), wanted);
      }
    }
  }
}

TEST(Meshgrid, KeepsDtypesAndRefusesMatrices) {
  const std::vector<expr> arrays{arange(3), zeros({2}, dtype::float32)};
  EXPECT_EQ(meshgrid(arrays)[0].dtype(), dtype::int64);
  EXPECT_EQ(meshgrid(arrays)[1].dtype(), dtype::float32);
  EXPECT_EQ(meshgrid(arrays)[1].shape(), (dims{2, 3}));
  const std::vector<expr> matrices{zeros({2, 2})};
  EXPECT_EQ(code_of([&] { meshgrid(matrices); }), errc::invalid_argument);
  const expr long_line = full({index_t{1} << 40}, 1);
  EXPECT_EQ(code_of([&] {
              meshgrid(std::vector<expr>{long_line, long_line});
            }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] { meshgrid(arrays, static_cast<grid_indexing>(2)); }),
            errc::invalid_argument);
}

}  // namespace
}  // namespace shale
