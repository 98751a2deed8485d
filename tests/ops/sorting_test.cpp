// Tests the order of elements: over random layouts, dtypes, axes and numbers of threads. The oracle
// is std::stable_sort of the indices of each lane, by a comparison of values.
#include "shale/sorting.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "ops/sorting/order_keys.hpp"
#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/mapped_file.hpp"
#include "shale/memory_pool.hpp"
#include "shale/ops.hpp"
#include "shale/tile_source.hpp"
#include "support/failures.hpp"
#include "support/order_oracle.hpp"
#include "support/random_tensors.hpp"
#include "support/scratch_directory.hpp"

namespace shale {
namespace {

using test::any_elements;
using test::code_of;
using test::elements_of;
using test::for_each_lane_of;
using test::index_list;
using test::number_of;
using test::order_of;
using test::precedes;
using test::random_choices;
using test::same_bits;

/// What argsort and sort give.
template <class T>
struct wanted_order {
  index_list indices;
  std::vector<T> elements;

  wanted_order(const tensor& values, index_t axis, descending order)
      : indices(static_cast<std::size_t>(values.size())), elements(indices.size()) {
    for_each_lane_of<T>(values, axis, [&](const auto& own, const auto& places) {
      const index_list sorted = order_of(own, order == descending::yes);
      for (std::size_t k = 0; k < places.size(); ++k) {
        indices[places[k]] = sorted[k];
        elements[places[k]] = own[static_cast<std::size_t>(sorted[k])];
      }
    });
  }
};

template <class T>
class Sorting : public testing::Test {
 protected:
  executor one_{{.threads = 1}}, two_{{.threads = 2}}, four_{{.threads = 4}};

  void expect_sorted(const tensor& values, index_t axis, descending order) {
    const wanted_order<T> wanted(values, axis, order);
    for (executor* on : {&one_, &two_, &four_}) {
      const executor::scope within(*on);
      const tensor sorted = sort(values, axis, order);
      ASSERT_EQ(sorted.shape(), values.shape());
      ASSERT_EQ(sorted.dtype(), values.dtype());
      ASSERT_TRUE(sorted.is_contiguous());
      ASSERT_TRUE(same_bits(elements_of<T>(sorted), wanted.elements));
      const tensor indices = argsort(values, axis, order);
      ASSERT_EQ(indices.shape(), values.shape());
      ASSERT_EQ(elements_of<std::int64_t>(indices), wanted.indices);
    }
  }
};
using element_list = testing::Types<bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                                    std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t,
                                    float16, bfloat16, float, double, float8_e4m3fn, float8_e5m2>;
TYPED_TEST_SUITE(Sorting, element_list);

// sort.1, sort.2, sort.3
TYPED_TEST(Sorting, IsStableOverAnyLayoutAndAxis) {
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    dims shape = test::random_shape(choose, {.axes_max = 4, .longest = 9});
    if (shape.empty()) shape.push_back(choose(0, 300));
    const tensor values = any_elements<TypeParam>(choose, shape);
    for (index_t axis = 0; axis < shape.size(); ++axis)
      for (const descending order : {descending::no, descending::yes})
        this->expect_sorted(values, axis, order);
  }
}

// Lanes of so many elements are cut into pieces that are merged.
TYPED_TEST(Sorting, OfALongLaneIsMergedFromPieces) {
  for (const index_t length : {65536, 131075}) {
    random_choices choose(static_cast<std::uint64_t>(length));
    for (const descending order : {descending::no, descending::yes}) {
      const tensor values = any_elements<TypeParam>(choose, {length});
      this->expect_sorted(values, 0, order);
    }
  }
  random_choices choose(7);
  this->expect_sorted(any_elements<TypeParam>(choose, {3, 70000}), 1, descending::no);
}

// keys.1, keys.2, keys.3: for all pairs of elements of one byte, and neighbours of two bytes.
template <class T>
void expect_keys_in_order() {
  using keys = ops::order_keys<T>;
  using bits = typename keys::bits;
  const int count = 1 << (8 * sizeof(T));
  for (int i = 0; i < count; ++i) {
    const auto a = static_cast<bits>(i);
    const T x = std::bit_cast<T>(a);
    for (int j = sizeof(T) == 1 ? 0 : std::max(0, i - 3); j < (sizeof(T) == 1 ? count : i); ++j) {
      const auto b = static_cast<bits>(j);
      ASSERT_EQ(keys::key(a) < keys::key(b), precedes(x, std::bit_cast<T>(b))) << i << " " << j;
    }
    const double number = number_of(x);
    if (std::isnan(number))
      ASSERT_TRUE(std::isnan(number_of(std::bit_cast<T>(keys::element(keys::key(a))))));
    else if (number == 0) ASSERT_EQ(keys::element(keys::key(a)), 0);
    else ASSERT_EQ(keys::element(keys::key(a)), a);
  }
}

TEST(OrderKeys, AreInTheOrderOfTheirElements) {
  expect_keys_in_order<std::int8_t>();
  expect_keys_in_order<std::uint8_t>();
  expect_keys_in_order<float8_e4m3fn>();
  expect_keys_in_order<float8_e5m2>();
  expect_keys_in_order<std::int16_t>();
  expect_keys_in_order<std::uint16_t>();
  expect_keys_in_order<float16>();
  expect_keys_in_order<bfloat16>();
}

TEST(SortingRules, EqualElementsStayInTheirOrder) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const tensor x = tensor::of<double>({nan, 0.0, 3, -0.0, -nan, 0.0, -1});
  EXPECT_EQ(elements_of<std::int64_t>(argsort(x)), (index_list{6, 1, 3, 5, 2, 0, 4}));
  EXPECT_EQ(elements_of<std::int64_t>(argsort(x, 0, descending::yes)),
            (index_list{0, 4, 2, 1, 3, 5, 6}));
  const auto sorted = elements_of<double>(sort(x));
  EXPECT_FALSE(std::signbit(sorted[1]));
  EXPECT_TRUE(std::signbit(sorted[2]));
  EXPECT_FALSE(std::signbit(sorted[3]));
  EXPECT_FALSE(std::signbit(sorted[5]));
  EXPECT_TRUE(std::signbit(sorted[6]));
}

TEST(SortingRules, AnyByteThatIsNotZeroIsTrue) {
  const tensor bytes = tensor::of<std::uint8_t>({7, 0, 1, 255, 0});
  const tensor x(bytes.storage(), dtype::boolean, bytes.layout());
  const tensor sorted = sort(x);
  EXPECT_EQ(elements_of<std::uint8_t>(tensor(sorted.storage(), dtype::uint8, sorted.layout())),
            (std::vector<std::uint8_t>{0, 0, 1, 1, 1}));
  EXPECT_EQ(elements_of<std::int64_t>(argsort(x)), (index_list{1, 4, 0, 2, 3}));
}

TEST(SortingRules, ComplexElementsAndMissingAxesAreErrors) {
  const tensor complex = tensor::zeros({4}, dtype::complex64);
  EXPECT_EQ(code_of([&] { sort(complex); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { argsort(complex); }), errc::invalid_argument);
  const tensor x = tensor::zeros({2, 3}, dtype::float32);
  EXPECT_EQ(code_of([&] { sort(x, 2); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { argsort(x, -3); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { sort(tensor::zeros({}, dtype::int8)); }), errc::invalid_argument);
}

TEST(SortingRules, EmptyOperandsGiveEmptyResults) {
  for (const dims& shape : {dims{0}, dims{3, 0}, dims{0, 3}}) {
    EXPECT_EQ(sort(tensor::zeros(shape, dtype::float32)).shape(), shape);
    EXPECT_EQ(argsort(tensor::zeros(shape, dtype::float64), 0).shape(), shape);
  }
}

TEST(SortingRules, FilesAreSortedAsMemoryIs) {
  const test::scratch_directory directory;
  const tensor values = eval(astype(expr(arange(60000)) * 7919 % 60013, dtype::int32));
  const auto path = directory.path() + "/x.bin";
  const tensor mapped(create_file(path, 240000), dtype::int32, layout({60000}));
  copy(mapped, values);
  executor little({.threads = 2, .memory_bytes = std::size_t{1} << 20});
  const executor::scope within(little);
  EXPECT_EQ(elements_of<std::int32_t>(sort(mapped)), elements_of<std::int32_t>(sort(values)));
  EXPECT_EQ(elements_of<std::int64_t>(argsort(mapped.reshape({200, 300}), 0)),
            elements_of<std::int64_t>(argsort(values.reshape({200, 300}), 0)));
  EXPECT_EQ(elements_of<std::int32_t>(sort(expr(values) - 5)),
            elements_of<std::int32_t>(eval(expr(sort(values)) - 5)));
}

TEST(SortingRules, PairsOfLongRowsStayInsideTheBudget) {
  const tensor values =
      eval(astype(expr(arange(300000)) * 7919 % 60013, dtype::float64)).view({100, 3000});
  executor little({.threads = 4, .memory_bytes = std::size_t{64} << 10});
  const executor::scope within(little);
  const wanted_order<double> wanted(values, 1, descending::no);
  EXPECT_EQ(elements_of<std::int64_t>(argsort(values, 1)), wanted.indices);
  EXPECT_LE(little.statistics().scratch_bytes_peak, little.memory_bytes());
}

// Along an axis that is not the last one: the operand with the axis as the last one, and the
// result; then both orders of the result.
TEST(SortingRules, HoldTwoCopiesAtATime) {
  constexpr std::size_t matrix = std::size_t{32} << 20;
  const tensor values = eval((arange(1 << 22) * 7919 % 60013).reshape({1 << 12, 1 << 10}));
  memory_pool pool;
  executor on({.threads = 2, .pool = &pool});
  const executor::scope within(on);
  for (const auto function : {sort, argsort}) {
    pool.reset_peak();
    EXPECT_EQ(function(values, 0, descending::no).shape(), values.shape());
    EXPECT_LE(pool.statistics().peak_live_bytes, 2 * matrix + matrix / 2);
  }
}

TEST(SortingRules, CancelledSortsThrow) {
  executor on({.threads = 2});
  const executor::scope within(on);
  const tensor values = tensor::zeros({200000}, dtype::float32);
  on.cancel();
  EXPECT_EQ(code_of([&] { sort(values); }), errc::cancelled);
  EXPECT_EQ(code_of([&] { argsort(values); }), errc::cancelled);
}

}  // namespace
}  // namespace shale
