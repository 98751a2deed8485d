// Tests positions in sorted elements, and elements without repetitions. The oracles count and compare
// values one by one.
#include "shale/searching.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/ops.hpp"
#include "shale/sorting.hpp"
#include "support/failures.hpp"
#include "support/order_oracle.hpp"
#include "support/random_tensors.hpp"

namespace shale {
namespace {

using test::any_elements;
using test::code_of;
using test::elements_of;
using test::index_list;
using test::number_of;
using test::order_of;
using test::precedes;
using test::random_choices;
using test::same_bits;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

template <class T>
class Searching : public testing::Test {};
using element_list = testing::Types<bool, std::int8_t, std::int16_t, std::int64_t, std::uint32_t,
                                    float16, bfloat16, float, double, float8_e5m2>;
TYPED_TEST_SUITE(Searching, element_list);

/// How many elements come before `value`, and how many do not come behind it.
template <class T>
index_list counts_around(const std::vector<T>& elements, const T& value) {
  index_t before = 0, not_behind = 0;
  for (const T& element : elements) {
    before += precedes<T>(element, value) ? 1 : 0;
    not_behind += precedes<T>(value, element) ? 0 : 1;
  }
  return {before, not_behind};
}

TYPED_TEST(Searching, CountsTheElementsBefore) {
  using T = TypeParam;
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const tensor elements = any_elements<T>(choose, {choose(0, 60)});
    const tensor values = any_elements<T>(choose, test::random_shape(choose, {.axes_max = 3}));
    const auto all = elements_of<T>(elements);
    index_list left, right;
    for (const T& value : elements_of<T>(values)) {
      const index_list counts = counts_around(all, value);
      left.push_back(counts[0]);
      right.push_back(counts[1]);
    }
    const tensor sorted = sort(elements);
    const tensor found = searchsorted(sorted, values);
    ASSERT_EQ(found.shape(), values.shape());
    ASSERT_EQ(elements_of<std::int64_t>(found), left);
    ASSERT_EQ(elements_of<std::int64_t>(searchsorted(sorted, values, search_side::right)), right);
    ASSERT_EQ(elements_of<std::int64_t>(
                  searchsorted(elements, values, search_side::right, argsort(elements))),
              right);
    ASSERT_EQ(elements_of<std::int64_t>(digitize(values, sorted)), right);
    ASSERT_EQ(elements_of<std::int64_t>(digitize(values, sorted, search_side::right)), left);
    // With edges that fall, bins are counted from the other end.
    if (all.empty() || !precedes<T>(elements_of<T>(sorted)[0], elements_of<T>(sorted).back()))
      continue;
    for (index_t& count : left) count = sorted.size() - count;
    ASSERT_EQ(elements_of<std::int64_t>(digitize(values, sorted.flip(), search_side::right)), left);
    // Positions in elements that are not sorted are in range.
    for (const index_t position : elements_of<std::int64_t>(searchsorted(elements, values)))
      ASSERT_TRUE(position >= 0 && position <= elements.size());
  }
}

template <class T>
struct wanted_groups {
  std::vector<T> values;
  index_list firsts, counts, inverse;

  explicit wanted_groups(const std::vector<T>& elements) : inverse(elements.size()) {
    index_t last = -1;
    for (const index_t index : order_of(elements, false)) {
      const T value = elements[static_cast<std::size_t>(index)];
      const bool starts = last < 0 || std::isnan(number_of<T>(value)) ||
                          precedes<T>(elements[static_cast<std::size_t>(last)], value);
      if (starts) {
        values.push_back(value);
        firsts.push_back(index);
        counts.push_back(0);
      }
      ++counts.back();
      inverse[static_cast<std::size_t>(index)] = static_cast<index_t>(values.size()) - 1;
      last = index;
    }
  }
};

template <class T>
void expect_unique(const tensor& values) {
  const wanted_groups<T> wanted(elements_of<T>(values));
  const unique_parts all = unique_all(values);
  ASSERT_TRUE(same_bits(elements_of<T>(all.values), wanted.values));
  ASSERT_EQ(elements_of<std::int64_t>(all.indices), wanted.firsts);
  ASSERT_EQ(elements_of<std::int64_t>(all.inverse_indices), wanted.inverse);
  ASSERT_EQ(all.inverse_indices.shape(), values.shape());
  ASSERT_EQ(elements_of<std::int64_t>(all.counts), wanted.counts);
  ASSERT_TRUE(same_bits(elements_of<T>(unique_values(values)), wanted.values));
  const unique_with_counts counted = unique_counts(values);
  ASSERT_TRUE(same_bits(elements_of<T>(counted.values), wanted.values));
  ASSERT_EQ(elements_of<std::int64_t>(counted.counts), wanted.counts);
  const unique_with_inverse inverse = unique_inverse(values);
  ASSERT_TRUE(same_bits(elements_of<T>(inverse.values), wanted.values));
  ASSERT_EQ(elements_of<std::int64_t>(inverse.inverse_indices), wanted.inverse);
}

TYPED_TEST(Searching, FindsElementsWithoutRepetitions) {
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    expect_unique<TypeParam>(
        any_elements<TypeParam>(choose, test::random_shape(choose, {.axes_max = 4, .longest = 9})));
  }
  for (const int threads : {1, 2, 4}) {
    executor on({.threads = threads});
    const executor::scope within(on);
    random_choices choose(1);
    expect_unique<TypeParam>(any_elements<TypeParam>(choose, {300, 301}));
  }
}

TEST(SearchingRules, EveryNanIsAValueAndZerosAreOne) {
  const tensor x = tensor::of<double>({nan, -0.0, 1, 0.0, nan});
  const unique_with_counts found = unique_counts(x);
  const auto values = elements_of<double>(found.values);
  ASSERT_EQ(values.size(), 4u);
  EXPECT_TRUE(std::signbit(values[0]));
  EXPECT_EQ(elements_of<std::int64_t>(found.counts), (index_list{2, 1, 1, 1}));
}

TEST(SearchingRules, OperandsArePromoted) {
  const tensor edges = tensor::of<double>({0.5, 1.5});
  const tensor values = tensor::of<std::int32_t>({0, 1, 2});
  EXPECT_EQ(elements_of<std::int64_t>(searchsorted(edges, values)), (index_list{0, 1, 2}));
  EXPECT_EQ(elements_of<std::int64_t>(searchsorted(values, edges)), (index_list{1, 2}));
  EXPECT_EQ(elements_of<std::int64_t>(searchsorted(values, 1)), index_list{1});
}

TEST(SearchingRules, IntegersWithoutADtypeMeetAnyIntegers) {
  const tensor large = tensor::of<std::uint64_t>({1, 5, ~std::uint64_t{0}});
  EXPECT_EQ(elements_of<std::int64_t>(searchsorted(large, 5)), index_list{1});
  EXPECT_EQ(elements_of<std::int64_t>(searchsorted(large, 5, search_side::right)), index_list{2});
  EXPECT_EQ(elements_of<std::int64_t>(digitize(5, large)), index_list{2});
  EXPECT_EQ(code_of([&] { searchsorted(large, -1); }), errc::invalid_argument);
  // A number that the dtype cannot hold, or that is no integer, is compared as what it is.
  const tensor small = tensor::of<std::uint8_t>({1, 5, 255});
  EXPECT_EQ(elements_of<std::int64_t>(searchsorted(small, 300)), index_list{3});
  EXPECT_EQ(elements_of<std::int64_t>(searchsorted(small, -1)), index_list{0});
  EXPECT_EQ(elements_of<std::int64_t>(searchsorted(small, 4.5)), index_list{1});
}

TEST(SearchingRules, BadOperandsAreErrors) {
  const tensor x = tensor::of<float>({1, 3, 2});
  const tensor matrix = tensor::zeros({2, 3}, dtype::float32);
  const tensor complex = tensor::zeros({3}, dtype::complex64);
  const auto refuses = [](auto call) { EXPECT_EQ(code_of(call), errc::invalid_argument); };
  refuses([&] { searchsorted(matrix, x); });
  refuses([&] { searchsorted(complex, x); });
  refuses([&] { searchsorted(x, complex); });
  refuses([&] { searchsorted(x, x, search_side::left, expr(tensor::of<std::int64_t>({0, 1}))); });
  refuses([&] {
    searchsorted(x, x, search_side::left, expr(tensor::of<std::int64_t>({0, 1, 3})));
  });
  refuses([&] { searchsorted(x, x, search_side::left, expr(x)); });
  refuses([&] { searchsorted(x, x, static_cast<search_side>(2)); });
  refuses([&] { digitize(x, x); });
  refuses([&] { digitize(x, matrix); });
  refuses([&] { digitize(complex, x); });
  refuses([&] { digitize(x, x, static_cast<search_side>(9)); });
  refuses([&] { unique_values(complex); });
  refuses([&] { unique_counts(complex); });
  refuses([&] { unique_inverse(complex); });
  refuses([&] { unique_all(complex); });
}

TEST(SearchingRules, EmptyOperandsGiveEmptyResults) {
  const tensor none = tensor::zeros({0, 3}, dtype::float32);
  const unique_parts all = unique_all(none);
  EXPECT_EQ(all.values.shape(), dims{0});
  EXPECT_EQ(all.counts.shape(), dims{0});
  EXPECT_EQ(all.inverse_indices.shape(), (dims{0, 3}));
  EXPECT_EQ(searchsorted(none.reshape({0}), none).shape(), (dims{0, 3}));
  EXPECT_EQ(searchsorted(none.reshape({0}), 5).item().as<index_t>(), 0);
  EXPECT_EQ(unique_values(7).shape(), dims{1});
}

}  // namespace
}  // namespace shale
