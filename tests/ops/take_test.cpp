// Tests expressions of elements at positions that integers name: over random layouts, dtypes, axes
// and views. The oracle finds each element by its coordinates.
#include "shale/take.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/mapped_file.hpp"
#include "shale/ops.hpp"
#include "shale/tile_source.hpp"
#include "support/coordinates.hpp"
#include "support/failures.hpp"
#include "support/random_tensors.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

using test::as_list;
using test::coordinates_of;
using test::count_of;
using test::elements_of;
using test::index_list;
using test::number_of;
using test::random_choices;
using test::text_of;

/// Indices of that shape into an axis, some of them negative. The dtype and the layout vary.
template <class T>
tensor random_indices(random_choices& choose, const dims& shape, index_t extent) {
  const tensor made = test::random_tensor<T>(choose, shape);
  const auto positions = test::positions_of(made);
  for (const auto position : positions) {
    const index_t index = std::is_signed_v<T> ? choose(-extent, extent - 1) : choose(0, extent - 1);
    const auto value = static_cast<T>(index);
    std::memcpy(
        const_cast<std::byte*>(made.storage().data()) + position * static_cast<index_t>(sizeof(T)),
        &value, sizeof(T));
  }
  return made;
}

tensor random_indices(random_choices& choose, const dims& shape, index_t extent) {
  switch (choose(0, 3)) {
    case 0:
      return random_indices<std::int8_t>(choose, shape, extent);
    case 1:
      return random_indices<std::uint64_t>(choose, shape, extent);
    case 2:
      return random_indices<std::uint16_t>(choose, shape, extent);
    default:
      return random_indices<std::int64_t>(choose, shape, extent);
  }
}

/// The indices in row-major order, counted from the start of the axis.
index_list numbers_of(const tensor& indices, index_t extent) {
  index_list numbers;
  for (const std::int64_t index : elements_of<std::int64_t>(eval(astype(indices, dtype::int64))))
    numbers.push_back(index < 0 ? index + extent : index);
  return numbers;
}

/// The elements of a tensor, by tiles.
class tiles_of final : public tile_source {
 public:
  tiles_of(tensor values, const dims& tile_shape)
      : values_(std::move(values)), tile_shape_(tile_shape) {}
  shale::dtype dtype() const noexcept override { return values_.dtype(); }
  const dims& shape() const noexcept override { return values_.shape(); }
  const dims& tile_shape() const noexcept override { return tile_shape_; }
  std::uint64_t stored_bytes(const dims&) const override { return 1; }
  void load(const dims& tile, const tensor& into) const override {
    tensor part = values_;
    for (index_t axis = 0; axis < tile.size(); ++axis)
      part = part.narrow(axis, tile[axis] * tile_shape_[axis], into.shape(axis));
    copy(into, part);
  }

 private:
  tensor values_;
  dims tile_shape_;
};

template <class T>
class Take : public testing::Test {};
using element_list = testing::Types<std::int8_t, std::int16_t, float, double, std::complex<double>>;
TYPED_TEST_SUITE(Take, element_list);

TYPED_TEST(Take, ReplacesAnAxisByThoseOfTheIndices) {
  using T = TypeParam;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape =
        test::random_shape(choose, {.axes_max = 4, .longest = 9, .may_be_empty = false});
    if (shape.empty()) continue;
    const index_t axis = choose(0, shape.size() - 1);
    const tensor values = test::random_tensor<T>(choose, shape);
    const dims index_shape = test::random_shape(choose, {.axes_max = 3, .longest = 8});
    const tensor indices = random_indices(choose, index_shape, shape[axis]);
    const auto numbers = numbers_of(indices, shape[axis]);
    const auto elements = elements_of<T>(values);

    index_list wanted_shape = as_list(shape);
    wanted_shape.erase(wanted_shape.begin() + axis);
    const auto depth = static_cast<index_t>(index_shape.size());
    wanted_shape.insert(wanted_shape.begin() + axis, index_shape.begin(), index_shape.end());
    std::vector<T> wanted;
    for (index_t k = 0; k < count_of(wanted_shape); ++k) {
      index_list at = coordinates_of(k, wanted_shape);
      const index_list index_at(at.begin() + axis, at.begin() + axis + depth);
      at.erase(at.begin() + axis, at.begin() + axis + depth);
      at.insert(at.begin() + axis, numbers[number_of(index_at, as_list(index_shape))]);
      wanted.push_back(elements[number_of(at, as_list(shape))]);
    }
    const expr taken = take(values, indices, choose(0, 1) == 0 ? axis : axis - shape.size());
    ASSERT_EQ(as_list(taken.shape()), wanted_shape);
    ASSERT_EQ(elements_of<T>(eval(taken)), wanted);
    // As a part of a larger expression, through a view, and of computed operands.
    ASSERT_EQ(elements_of<T>(eval((taken + taken).flip() - taken.flip())),
              elements_of<T>(eval(expr(eval(taken)).flip())));
    const expr twice = take(expr(values) + expr(values), expr(indices) * 1, axis);
    ASSERT_EQ(elements_of<T>(eval(twice - taken)), wanted);
  }
}

TYPED_TEST(Take, AlongAnAxisKeepsTheOtherCoordinates) {
  using T = TypeParam;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    dims shape = test::random_shape(choose, {.axes_max = 4, .longest = 9, .may_be_empty = false});
    if (shape.empty()) continue;
    const index_t axis = choose(0, shape.size() - 1);
    dims index_shape = shape, wanted = shape;
    for (index_t k = 0; k < shape.size(); ++k) {
      if (k == axis) wanted[k] = index_shape[k] = choose(0, 12);
      else if (const auto one = choose(0, 4); one == 0) index_shape[k] = 1;
      else if (one == 1) shape[k] = 1;
    }
    const tensor values = test::random_tensor<T>(choose, shape);
    const tensor indices = random_indices(choose, index_shape, shape[axis]);
    const auto numbers = numbers_of(indices, shape[axis]);
    const auto elements = elements_of<T>(values);
    const auto clamped = [](index_list at, const dims& extents) {
      for (std::size_t k = 0; k < at.size(); ++k)
        if (extents[static_cast<index_t>(k)] == 1) at[k] = 0;
      return at;
    };
    const auto element_at = [&](index_list at) {
      const index_list index_at = clamped(at, index_shape);
      at = clamped(at, shape);
      at[static_cast<std::size_t>(axis)] = numbers[number_of(index_at, as_list(index_shape))];
      return elements[number_of(at, as_list(shape))];
    };
    const expr taken = take_along_axis(values, indices, axis);
    dims result = wanted;
    for (index_t k = 0; k < shape.size(); ++k)
      if (k != axis) result[k] = std::max(shape[k], index_shape[k]);
    ASSERT_EQ(taken.shape(), result);
    std::vector<T> expected;
    for (index_t k = 0; k < count_of(as_list(result)); ++k)
      expected.push_back(element_at(coordinates_of(k, as_list(result))));
    ASSERT_EQ(elements_of<T>(eval(taken)), expected);

    // `gather` reads a corner of the operand.
    dims corner = shape;
    for (index_t k = 0; k < shape.size(); ++k)
      corner[k] = k == axis ? choose(0, 12) : choose(1, shape[k]);
    const tensor few = random_indices(choose, corner, shape[axis]);
    const auto few_numbers = numbers_of(few, shape[axis]);
    std::vector<T> gathered;
    for (index_t k = 0; k < count_of(as_list(corner)); ++k) {
      index_list at = coordinates_of(k, as_list(corner));
      at[static_cast<std::size_t>(axis)] = few_numbers[static_cast<std::size_t>(k)];
      gathered.push_back(elements[number_of(at, as_list(shape))]);
    }
    ASSERT_EQ(elements_of<T>(eval(gather(values, axis, few))), gathered);
  }
}

TYPED_TEST(Take, AtCoordinatesFindsElementsAndSubArrays) {
  using T = TypeParam;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape =
        test::random_shape(choose, {.axes_max = 4, .longest = 5, .may_be_empty = false});
    const tensor values = test::random_tensor<T>(choose, shape);
    const auto elements = elements_of<T>(values);
    const index_t coordinates = choose(0, shape.size());
    dims index_shape = test::random_shape(choose, {.axes_max = 2, .longest = 6});
    const index_list points = as_list(index_shape);
    index_shape.push_back(coordinates);
    const tensor indices = tensor::zeros(index_shape, dtype::int64);
    const auto index_elements = indices.elements<std::int64_t>();
    for (std::size_t k = 0; k < index_elements.size(); ++k) {
      const index_t extent = shape[static_cast<index_t>(k) % coordinates];
      index_elements[k] = choose(-extent, extent - 1);
    }
    index_list wanted_shape = points;
    wanted_shape.insert(wanted_shape.end(), shape.begin() + coordinates, shape.end());
    std::vector<T> wanted;
    for (index_t k = 0; k < count_of(wanted_shape); ++k) {
      const index_list at = coordinates_of(k, wanted_shape);
      index_list point(at.begin(), at.begin() + static_cast<long>(points.size()));
      index_list from;
      for (index_t c = 0; c < coordinates; ++c) {
        point.push_back(c);
        const index_t index = index_elements[number_of(point, as_list(index_shape))];
        from.push_back(index < 0 ? index + shape[c] : index);
        point.pop_back();
      }
      from.insert(from.end(), at.begin() + static_cast<long>(points.size()), at.end());
      wanted.push_back(elements[number_of(from, as_list(shape))]);
    }
    const expr taken = gather_nd(values, indices);
    ASSERT_EQ(as_list(taken.shape()), wanted_shape);
    ASSERT_EQ(elements_of<T>(eval(taken)), wanted);
  }
}

// The blocks of threads begin anywhere.
TEST(Takes, OfManyElementsAreTheSameForAnyNumberOfThreads) {
  random_choices choose(3);
  const tensor values = eval(arange(600'000));
  const tensor indices = random_indices<std::int64_t>(choose, {400'003}, 600'000);
  const auto numbers = numbers_of(indices, 600'000);
  for (const int threads : {1, 2, 4}) {
    executor on({.threads = threads});
    const executor::scope within(on);
    ASSERT_EQ(elements_of<std::int64_t>(eval(take(values, indices))), numbers);
    const tensor matrix = values.view({600, 1000});
    const tensor rows = eval(take(matrix, indices.narrow(0, 0, 500) % 600, 0));
    for (index_t k = 0; k < 500; ++k)
      ASSERT_EQ(rows.select(0, k).select(0, 999).item().as<index_t>(),
                numbers[static_cast<std::size_t>(k)] % 600 * 1000 + 999);
  }
}

TEST(Takes, ReadFilesAndTileSources) {
  test::scratch_directory directory;
  storage bytes = create_file(directory / "a", 1000 * sizeof(std::int64_t));
  const tensor mapped(bytes, dtype::int64, layout({10, 100}));
  eval_into(mapped, arange(1000).reshape({10, 100}));
  const tensor indices = tensor::of<std::int32_t>({7, -1, 0});
  EXPECT_EQ(elements_of<std::int64_t>(eval(take(mapped, indices, 0).select(1, 5))),
            (std::vector<std::int64_t>{705, 905, 5}));
  const auto tiles = std::make_shared<tiles_of>(eval(arange(1000).reshape({10, 100})), dims{3, 40});
  EXPECT_EQ(elements_of<std::int64_t>(eval(
                take(expr(std::shared_ptr<const tile_source>(tiles)), indices, 1).select(0, 2))),
            (std::vector<std::int64_t>{207, 299, 200}));
  // The result may replace its operand.
  const tensor line = eval(arange(5));
  eval_into(line, take(line, tensor::of<std::int64_t>({4, 3, 2, 1, 0})));
  EXPECT_EQ(elements_of<std::int64_t>(line), (std::vector<std::int64_t>{4, 3, 2, 1, 0}));
}

TEST(Takes, RefuseWhatIsOutOfRange) {
  const tensor values = eval(arange(12).reshape({3, 4}));
  const auto refused = [&](const tensor& indices, index_t axis) {
    return text_of([&] { eval(take(values, indices, axis)); });
  };
  EXPECT_NE(refused(tensor::of<std::int64_t>({0, 3}), 0)
                .find("index 3 along axis 0, which has 3 positions"),
            std::string::npos);
  EXPECT_NE(refused(tensor::of<std::int8_t>({-5}), 1).find("index -5 along axis 1"),
            std::string::npos);
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  EXPECT_NE(refused(tensor::of<std::uint64_t>({most}), 0).find("out of range"), std::string::npos);
  EXPECT_NE(refused(tensor::of<std::int64_t>({std::numeric_limits<std::int64_t>::min()}), 0)
                .find("out of range"),
            std::string::npos);
  // Rows and columns that have nothing to read from, or that are never read.
  const tensor nothing = tensor::empty({0, 4}, dtype::int64);
  EXPECT_NE(text_of([&] { eval(take(nothing, tensor::of<std::int64_t>({0}), 0)); }), "");
  EXPECT_EQ(eval(take(nothing, tensor::of<std::int64_t>({9}), 1)).size(), 0);
  EXPECT_EQ(eval(take(values, tensor::empty({0}, dtype::int64), 0)).shape(), dims({0, 4}));

  const auto code = [](auto body) { return test::code_of(body); };
  const tensor fractions = tensor::of<double>({1});
  EXPECT_EQ(code([&] { take(values, fractions, 0); }), errc::invalid_argument);
  EXPECT_EQ(code([&] { take(values, expr(values) > 3, 0); }), errc::invalid_argument);
  EXPECT_EQ(code([&] { take(values, tensor::of<std::int64_t>({0}), 2); }), errc::invalid_argument);
  EXPECT_EQ(code([&] { take_along_axis(values, tensor::of<std::int64_t>({0}), 0); }),
            errc::invalid_argument);
  EXPECT_EQ(code([&] {
              gather(values, 0, tensor::zeros({1, 5}, dtype::int64));
            }),
            errc::invalid_argument);
  EXPECT_EQ(code([&] {
              gather_nd(values, tensor::zeros({1, 3}, dtype::int64));
            }),
            errc::invalid_argument);
  EXPECT_EQ(code([&] { gather_nd(values, tensor::zeros({}, dtype::int64)); }),
            errc::invalid_argument);

  // More elements than there can be.
  constexpr index_t many = index_t{1} << 40;
  const expr column = full({many, 1}, 0, dtype::int64), row = full({1, many}, 0, dtype::int64);
  EXPECT_EQ(code([&] { take(row, column.squeeze(1), 0); }), errc::invalid_argument);
  EXPECT_EQ(code([&] { take_along_axis(column, row, 1); }), errc::invalid_argument);
  EXPECT_EQ(code([&] { gather_nd(row, column); }), errc::invalid_argument);
}

}  // namespace
}  // namespace shale
