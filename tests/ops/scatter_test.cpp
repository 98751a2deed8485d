// Tests stores at positions that integers name: over random layouts, dtypes, axes and duplicates.
// The oracle stores one element after the other.
#include "shale/scatter.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/mapped_file.hpp"
#include "shale/masks.hpp"
#include "shale/ops.hpp"
#include "support/coordinates.hpp"
#include "support/failures.hpp"
#include "support/random_tensors.hpp"
#include "support/scratch_directory.hpp"

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
using test::text_of;

tensor random_indices(random_choices& choose, const dims& shape, index_t extent) {
  const tensor made = test::random_tensor<std::int32_t>(choose, shape, test::sharing::distinct);
  for (const auto position : test::positions_of(made)) {
    const auto index = static_cast<std::int32_t>(choose(-extent, extent - 1));
    std::memcpy(const_cast<std::byte*>(made.storage().data()) + position * 4, &index, 4);
  }
  return made;
}

index_list numbers_of(const tensor& indices, index_t extent) {
  index_list numbers;
  for (const std::int32_t index : elements_of<std::int32_t>(indices))
    numbers.push_back(index < 0 ? index + extent : index);
  return numbers;
}

template <class T>
class Scatters : public testing::Test {};
using element_list =
    testing::Types<bool, std::int8_t, std::int64_t, float16, float, double, std::complex<float>>;
TYPED_TEST_SUITE(Scatters, element_list);

template <class T>
T sum_of(T a, T b) {
  if constexpr (std::is_same_v<T, float16>) return T(static_cast<float>(a) + static_cast<float>(b));
  else if constexpr (std::is_same_v<T, bool>) return a || b;
  else return static_cast<T>(a + b);
}

TYPED_TEST(Scatters, StoreAndAddInTheOrderOfTheAxis) {
  using T = TypeParam;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape =
        test::random_shape(choose, {.axes_max = 4, .longest = 7, .may_be_empty = false});
    if (shape.empty()) continue;
    const index_t axis = choose(0, shape.size() - 1);
    dims index_shape = shape;
    for (index_t k = 0; k < shape.size(); ++k)
      index_shape[k] = k == axis ? choose(0, 12) : choose(1, shape[k]);
    const tensor indices = random_indices(choose, index_shape, shape[axis]);
    const auto numbers = numbers_of(indices, shape[axis]);
    const bool one_value = choose(0, 3) == 0;
    const tensor values = test::random_tensor<T>(choose, one_value ? dims() : index_shape);
    const auto value_elements = elements_of<T>(values);
    executor on({.threads = static_cast<int>(choose(1, 4))});
    const executor::scope within(on);
    for (const bool adds : {false, true}) {
      const tensor out = test::random_tensor<T>(choose, shape, test::sharing::distinct);
      auto wanted = elements_of<T>(out);
      const index_list extents = as_list(index_shape);
      for (index_t k = 0; k < count_of(extents); ++k) {
        index_list at = coordinates_of(k, extents);
        at[static_cast<std::size_t>(axis)] = numbers[static_cast<std::size_t>(k)];
        auto&& to = wanted[number_of(at, as_list(shape))];
        const T value = value_elements[one_value ? 0 : static_cast<std::size_t>(k)];
        to = adds ? sum_of<T>(to, value) : value;
      }
      if (adds) scatter_add(out, axis, indices, values);
      else scatter(out, axis - shape.size(), indices, values);
      ASSERT_EQ(elements_of<T>(out), wanted) << adds;
    }

    // Whole slices.
    const tensor line = random_indices(choose, {choose(0, 9)}, shape[axis]);
    const auto line_numbers = numbers_of(line, shape[axis]);
    dims slices = shape;
    slices[axis] = line.size();
    const tensor rows = test::random_tensor<T>(choose, slices);
    const auto row_elements = elements_of<T>(rows);
    for (const int kind : {0, 1, 2}) {
      const tensor out = test::random_tensor<T>(choose, shape, test::sharing::distinct);
      auto wanted = elements_of<T>(out);
      for (index_t k = 0; k < count_of(as_list(slices)); ++k) {
        index_list at = coordinates_of(k, as_list(slices));
        auto& along = at[static_cast<std::size_t>(axis)];
        along = line_numbers[static_cast<std::size_t>(along)];
        auto&& to = wanted[number_of(at, as_list(shape))];
        const T value = row_elements[static_cast<std::size_t>(k)];
        to = kind == 0 ? value : kind == 1 ? sum_of<T>(to, value) : static_cast<T>(1.0F);
      }
      if (kind == 0) index_copy(out, axis, line, rows);
      else if (kind == 1) index_add(out, axis, line, rows);
      else index_fill(out, axis, line, 1);
      ASSERT_EQ(elements_of<T>(out), wanted) << kind;
    }

    const index_t size = count_of(as_list(shape));
    const tensor places = random_indices(choose, {choose(0, 20)}, size);
    const tensor stored = test::random_tensor<T>(choose, {places.size()});
    const tensor out = test::random_tensor<T>(choose, shape, test::sharing::distinct);
    auto wanted = elements_of<T>(out);
    for (index_t k = 0; k < places.size(); ++k)
      wanted[static_cast<std::size_t>(numbers_of(places, size)[static_cast<std::size_t>(k)])] =
          elements_of<T>(stored)[static_cast<std::size_t>(k)];
    put(out, places, stored);
    ASSERT_EQ(elements_of<T>(out), wanted);
  }
}

// A long lane is shared by threads, and sums of floats depend on their order.
TEST(Scatter, OfALongLaneHasTheSameBitsForAnyNumberOfThreads) {
  const index_t count = 200'000, bins = 1000;
  random_choices choose(5);
  const tensor indices = random_indices(choose, {count}, bins);
  const auto numbers = numbers_of(indices, bins);
  const tensor weights = eval(sin(astype(arange(count), dtype::float64)));
  const auto elements = elements_of<double>(weights);
  std::vector<double> sums(static_cast<std::size_t>(bins)), last(static_cast<std::size_t>(bins));
  for (std::size_t k = 0; k < elements.size(); ++k) {
    sums[static_cast<std::size_t>(numbers[k])] += elements[k];
    last[static_cast<std::size_t>(numbers[k])] = elements[k];
  }
  for (const int threads : {1, 2, 3, 4}) {
    executor on({.threads = threads});
    const executor::scope within(on);
    const tensor out = tensor::zeros({bins}, dtype::float64);
    scatter_add(out, 0, indices, weights);
    ASSERT_EQ(elements_of<double>(out), sums);
    scatter(out, 0, indices, weights);
    ASSERT_EQ(elements_of<double>(out), last);
  }
}

TEST(Scatter, MayOverlapItsOperandsAndGoesIntoFiles) {
  test::scratch_directory directory;
  storage bytes = create_file(directory / "a", 6 * sizeof(std::int64_t));
  const tensor mapped(bytes, dtype::int64, layout({6}));
  eval_into(mapped, arange(6));
  scatter(mapped, 0, mapped.flip(), mapped);
  EXPECT_EQ(elements_of<std::int64_t>(mapped), (index_list{5, 4, 3, 2, 1, 0}));
  // Rows that lie anywhere, in a view that has no single stride over all elements.
  const tensor matrix = eval(arange(12).reshape({3, 4}));
  put(matrix.narrow(1, 1, 2), tensor::of<std::int8_t>({5, 0, -1}),
      tensor::of<double>({50, 10, 60}));
  EXPECT_EQ(elements_of<std::int64_t>(matrix), (index_list{0, 10, 2, 3, 4, 5, 6, 7, 8, 9, 60, 11}));
}

TEST(Scatter, CountsAsAWriteOfTheStorage) {
  const tensor out = tensor::zeros({4}, dtype::int64);
  const auto before = out.storage().version();
  scatter(out, 0, tensor::of<std::int64_t>({1, 2}), 5);
  EXPECT_EQ(out.storage().version(), before + 1);
  masked_scatter(out, expr(out) == 5, expr(1).broadcast_to({index_t{1} << 40}));
  EXPECT_EQ(out.storage().version(), before + 2);
  EXPECT_EQ(elements_of<std::int64_t>(out), (index_list{0, 1, 1, 0}));
}

TEST(Scatter, FillsNothingIfAnIndexIsOutOfRangeOrTheValueDoesNotFit) {
  const tensor out = eval(arange(6).reshape({2, 3}));
  const auto before = elements_of<std::int64_t>(out);
  EXPECT_NE(text_of([&] {
              index_fill(out, 1, tensor::of<int>({0, 3}), 9);
            }).find("index 3 along axis 1, which has 3 positions"),
            std::string::npos);
  EXPECT_EQ(elements_of<std::int64_t>(out), before);
  for (const double number : {2.5, 1e30, std::nan("")}) {
    EXPECT_EQ(code_of([&] { index_fill(out, 1, tensor::of<int>({0}), number); }),
              errc::invalid_argument)
        << number;
    EXPECT_EQ(elements_of<std::int64_t>(out), before) << number;
  }
}

TEST(Scatter, StoresNothingIfAnIndexIsOutOfRange) {
  const tensor out = eval(arange(6).reshape({2, 3}));
  const auto before = elements_of<std::int64_t>(out);
  const auto refused = [&](auto body) {
    const std::string text = text_of(body);
    EXPECT_EQ(elements_of<std::int64_t>(out), before);
    return text;
  };
  EXPECT_NE(refused([&] {
              index_add(out, 0, tensor::of<int>({0, -3}), 1);
            }).find("index -3"),
            std::string::npos);
  EXPECT_NE(refused([&] {
              put(out, tensor::of<int>({0, 6}), 1);
            }).find("index 6"),
            std::string::npos);
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  EXPECT_NE(refused([&] { put(out, tensor::of<std::uint64_t>({most}), 1); }).find("out of range"),
            std::string::npos);
  const auto code = [&](auto body) {
    const errc found = code_of(body);
    EXPECT_EQ(elements_of<std::int64_t>(out), before);
    return found;
  };
  const tensor zero = tensor::of<std::int64_t>({0});
  EXPECT_EQ(code([&] { scatter(out, 0, zero, 1); }), errc::invalid_argument);
  EXPECT_EQ(code([&] {
              scatter(out, 0, tensor::zeros({1, 4}, dtype::int64), 1);
            }),
            errc::invalid_argument);
  EXPECT_EQ(code([&] {
              index_copy(out, 0, zero, tensor::zeros({2, 3}, dtype::int64));
            }),
            errc::invalid_argument);
  EXPECT_EQ(code([&] { index_copy(out, 0, zero.expand_dims(0), 1); }), errc::invalid_argument);
  EXPECT_EQ(code([&] {
              index_copy(out, 0, zero.narrow(0, 0, 0), tensor::zeros({7, 7, 7}, dtype::int64));
            }),
            errc::invalid_argument);
  EXPECT_EQ(code([&] {
              put(out, zero, tensor::zeros({1, 1, 1}, dtype::int64));
            }),
            errc::invalid_argument);
  EXPECT_EQ(code([&] { index_copy(out, 0, tensor::of<double>({0}), 1); }), errc::invalid_argument);
  EXPECT_EQ(code([&] {
              scatter(out.select(0, 0).broadcast_to({2, 3}), 0, zero, 1);
            }),
            errc::invalid_argument);
  // Values that do not fit are not computed: these would take more memory than there is.
  const expr many = arange(index_t{1} << 58);
  EXPECT_NE(refused([&] { scatter(out, 0, zero.expand_dims(0), many); }).find("broadcast"),
            std::string::npos);
  EXPECT_NE(refused([&] { index_add(out, 0, zero, many); }).find("broadcast"), std::string::npos);
  const tensor eight_bits = tensor::empty({3}, dtype::float8_e5m2);
  EXPECT_EQ(code([&] { index_add(eight_bits, 0, zero, 1); }), errc::invalid_argument);
}

}  // namespace
}  // namespace shale
