// Tests what is drawn at random from elements: categories by their weights, permutations, and
// elements without replacement. The words are those of Philox4x32-10 written as in its paper.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/ops.hpp"
#include "shale/random.hpp"
#include "support/chi_square.hpp"
#include "support/failures.hpp"
#include "support/philox_oracle.hpp"
#include "support/random_tensors.hpp"
#include "support/run_on.hpp"

namespace shale {
namespace {

using test::code_of;
using test::elements_of;
using test::long_word;
using test::surprise;

// ---- categories ---------------------------------------------------------------------------------

tensor row_of(const std::vector<double>& values) {
  return tensor::of(std::span<const double>(values), {static_cast<index_t>(values.size())});
}

TEST(Multinomial, DrawsCategoriesByTheirWeights) {
  generator g(41, 5);
  const std::vector<double> weights = {0, 3, 0, 1, 0.5, 0, 5.5, 0};
  const tensor got = multinomial(g, row_of(weights), 100000);
  EXPECT_EQ(g, generator(41, 100005));
  EXPECT_EQ(got.shape(), dims{100000});
  EXPECT_LT(surprise({{1, 0.3}, {3, 0.1}, {4, 0.05}, {6, 0.55}}, elements_of<std::int64_t>(got)),
            3.5);
  // Each result is the category that the number of its position falls into.
  const auto numbers = elements_of<std::int64_t>(got);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const double x = std::ldexp(static_cast<double>(long_word(41, 5 + i) >> 11), -53) * 10;
    EXPECT_EQ(numbers[i], x < 3 ? 1 : x < 4 ? 3 : x < 4.5 ? 4 : 6);
  }
}

TEST(Multinomial, DrawsFromEachRow) {
  generator g(43);
  const tensor weights = tensor::of({{1.f, 0.f, 0.f}, {0.f, 0.f, 2.f}});
  EXPECT_EQ(elements_of<std::int64_t>(multinomial(g, weights, 2)),
            (std::vector<std::int64_t>{0, 0, 2, 2}));
  EXPECT_EQ(multinomial(g, weights, 0).shape(), (dims{2, 0}));
  EXPECT_EQ(multinomial(g, tensor::empty({0, 3}, dtype::float32), 4).shape(), (dims{0, 4}));
  EXPECT_EQ(g.position(), 4u);
  EXPECT_EQ(elements_of<std::int64_t>(multinomial(g, arange(2), 3)),
            (std::vector<std::int64_t>{1, 1, 1}));
}

TEST(Multinomial, RefusesWeightsThatAreNone) {
  generator g(1);
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& weights :
       {std::vector<double>{1, -1}, {1, nan}, {1, infinity}, {0, 0}, {}, {1e308, 1e308}})
    EXPECT_EQ(code_of([&] { multinomial(g, row_of(weights), 3); }), errc::invalid_argument);
  const expr one = full({1}, 1.0);
  EXPECT_EQ(code_of([&] { multinomial(g, one, -1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { multinomial(g, expr(1.0), 1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { multinomial(g, full({1, 1, 1}, 1.0), 1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { multinomial(g, astype(one, dtype::complex64), 1); }),
            errc::invalid_argument);
  EXPECT_EQ(g.position(), 0u);
}

// ---- permutations -------------------------------------------------------------------------------

TEST(Permutation, SwapsEachPlaceWithOneBeforeIt) {
  for (const index_t n : {0, 1, 2, 1000, 1023, 1024, 1025, 5000}) {
    generator g(21, 9);
    const tensor got = permutation(g, n);
    EXPECT_EQ(g.position(), 9 + static_cast<std::uint64_t>(n));
    std::vector<std::int64_t> wanted(static_cast<std::size_t>(n));
    std::iota(wanted.begin(), wanted.end(), 0);
    for (std::size_t place = wanted.size(); place-- > 0;) {
      __extension__ using wide = unsigned __int128;
      const auto other =
          static_cast<std::size_t>((wide{long_word(21, 9 + place)} * (place + 1)) >> 64);
      std::swap(wanted[place], wanted[other]);
    }
    EXPECT_EQ(elements_of<std::int64_t>(got), wanted);
    std::sort(wanted.begin(), wanted.end());
    for (std::size_t k = 0; k < wanted.size(); ++k)
      ASSERT_EQ(wanted[k], static_cast<std::int64_t>(k));
  }
}

TEST(Permutation, OfFourNumbersHasEveryOrderEquallyOften) {
  generator g(22);
  std::vector<std::int64_t> orders;
  std::map<std::int64_t, double> expected;
  for (int k = 0; k < 24000; ++k) {
    std::int64_t order = 0;
    for (const std::int64_t number : elements_of<std::int64_t>(permutation(g, 4)))
      order = 10 * order + number;
    orders.push_back(order);
    expected[order] = 1.0 / 24;
  }
  EXPECT_EQ(expected.size(), 24u);
  EXPECT_LT(surprise(expected, orders), 3.5);
}

// ---- draws without replacement ------------------------------------------------------------------

TEST(MultinomialOnce, DrawsEachOrderAsOftenAsItsWeightsSay) {
  generator g(31, 7);
  const std::vector<double> weights = {0.5, 0, 2, 1.5, 0, 1};
  const tensor rows = eval(row_of(weights).broadcast_to({40000, 6}));
  const tensor got = multinomial(g, rows, 2, replacement::no);
  EXPECT_EQ(g, generator(31, 7 + 240000));
  EXPECT_EQ(got.shape(), (dims{40000, 2}));
  std::map<std::int64_t, double> expected;
  for (std::size_t i = 0; i < weights.size(); ++i)
    for (std::size_t j = 0; j < weights.size(); ++j)
      if (i != j && weights[i] > 0 && weights[j] > 0)
        expected[static_cast<std::int64_t>(10 * i + j)] =
            weights[i] / 5 * weights[j] / (5 - weights[i]);
  std::vector<std::int64_t> pairs;
  const auto drawn = elements_of<std::int64_t>(got);
  for (std::size_t k = 0; k < drawn.size(); k += 2) pairs.push_back(10 * drawn[k] + drawn[k + 1]);
  EXPECT_LT(surprise(expected, pairs), 3.5);
}

TEST(MultinomialOnce, DrawsAllIfAsked) {
  generator g(32);
  const std::vector<double> weights = {5e-324, 0, 1e-323, 5e-324, 5e-324, 0};
  std::set<std::int64_t> firsts;
  for (int k = 0; k < 200; ++k) {
    auto drawn = elements_of<std::int64_t>(multinomial(g, row_of(weights), 4, replacement::no));
    firsts.insert(drawn[0]);
    std::sort(drawn.begin(), drawn.end());
    ASSERT_EQ(drawn, (std::vector<std::int64_t>{0, 2, 3, 4}));
  }
  EXPECT_EQ(firsts.size(), 4U) << "tiny weights are not all alike";
  EXPECT_EQ(multinomial(g, row_of(weights), 0, replacement::no).shape(), dims{0});
  EXPECT_EQ(multinomial(g, tensor::empty({0, 3}, dtype::float32), 2, replacement::no).shape(),
            (dims{0, 2}));
}

TEST(MultinomialOnce, RefusesMoreThanThereIs) {
  generator g(33);
  const double nan = std::nan("");
  for (const std::vector<double>& weights :
       {std::vector<double>{1, 0, 2}, {1, 2, -1}, {1, nan, 1}, {}, {1, 2}})
    EXPECT_EQ(code_of([&] { multinomial(g, row_of(weights), 3, replacement::no); }),
              errc::invalid_argument);
  EXPECT_EQ(g.position(), 0u);
}

TEST(Choice, TakesSlicesThatWereDrawn) {
  const tensor a = eval(arange(5 * 4 * 3).reshape({5, 4, 3}));
  for (const index_t axis : {0, 1, 2, -2}) {
    const index_t length = a.shape(axis);
    generator g(34, 3), same(34, 3);
    const tensor got = eval(choice(g, a, 9, replacement::yes, axis));
    const auto numbers = elements_of<std::int64_t>(eval(integers(same, {9}, 0, length)));
    EXPECT_EQ(g, same);
    for (index_t k = 0; k < 9; ++k)
      EXPECT_EQ(elements_of<std::int64_t>(got.select(axis, k)),
                elements_of<std::int64_t>(a.select(axis, numbers[static_cast<std::size_t>(k)])));
    const tensor all = eval(choice(g, a, length, replacement::no, axis));
    const auto order = elements_of<std::int64_t>(permutation(same, length));
    EXPECT_EQ(g, same);
    for (index_t k = 0; k < length; ++k)
      EXPECT_EQ(elements_of<std::int64_t>(all.select(axis, k)),
                elements_of<std::int64_t>(a.select(axis, order[static_cast<std::size_t>(k)])));
  }
  generator g(35);
  EXPECT_EQ(choice(g, a, 0).shape(), (dims{0, 4, 3}));
  EXPECT_EQ(choice(g, tensor::empty({0, 2}, dtype::int8), 0).shape(), (dims{0, 2}));
  const std::uint64_t before = g.position();
  EXPECT_EQ(code_of([&] { choice(g, a, -1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { choice(g, a, 6, replacement::no); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { choice(g, a, 1, replacement::yes, 3); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { choice(g, expr(1), 1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] {
              choice(g, tensor::empty({0, 2}, dtype::int8), 1);
            }),
            errc::invalid_argument);
  EXPECT_EQ(g.position(), before);
}

TEST(Shuffle, PutsSlicesIntoRandomOrder) {
  const tensor all = eval(arange(60 * 7).reshape({60, 7}));
  const tensor before = all.clone();
  const tensor part = all.sliced(0, {.start = 1, .step = 2}).narrow(1, 2, 4);
  const tensor part_before = part.clone();
  generator g(36), same(36);
  shuffle(g, part);
  const auto order = elements_of<std::int64_t>(permutation(same, 30));
  EXPECT_EQ(g, same);
  for (index_t k = 0; k < 30; ++k)
    EXPECT_EQ(elements_of<std::int64_t>(part.select(0, k)),
              elements_of<std::int64_t>(part_before.select(0, order[static_cast<std::size_t>(k)])));
  EXPECT_EQ(elements_of<std::int64_t>(all.narrow(1, 0, 2)),
            elements_of<std::int64_t>(before.narrow(1, 0, 2)))
      << "elements outside of the view";
  shuffle(g, all, 1);
  EXPECT_EQ(g.position(), 37u);
  EXPECT_EQ(code_of([&] { shuffle(g, all, 2); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] {
              shuffle(g, tensor::full({3, 3}, 1, dtype::int8).narrow(0, 0, 1).broadcast_to({4, 3}));
            }),
            errc::invalid_argument);
  EXPECT_EQ(g.position(), 37u);
}

// The number of integers is 2^64, which no integer of 64 bits holds. They are the words themselves.
TEST(RandomIntegers, MayBeAllOfADtype) {
  generator source(3);
  const tensor drawn = eval(integers(source, {1000}, std::numeric_limits<std::int64_t>::min(),
                                     scalar(std::uint64_t{1} << 63)));
  index_t negative = 0;
  std::set<std::int64_t> different;
  for (const std::int64_t number : test::elements_of<std::int64_t>(drawn)) {
    negative += number < 0 ? 1 : 0;
    different.insert(number);
  }
  const auto numbers = elements_of<std::int64_t>(drawn);
  for (std::size_t position = 0; position < numbers.size(); ++position)
    ASSERT_EQ(static_cast<std::uint64_t>(numbers[position]), long_word(3, position));
  EXPECT_EQ(different.size(), 1000U);
  EXPECT_GT(negative, 400);
  EXPECT_LT(negative, 600);
}

// The product of a fraction and a subnormal sum may be rounded up to the sum.
TEST(Multinomial, OfTinyWeightsDrawsNoCategoryBehindTheLastOne) {
  generator source(5);
  const tensor weights = tensor::of<double>({0, 5e-324, 0});
  for (const std::int64_t category :
       test::elements_of<std::int64_t>(multinomial(source, weights, 200)))
    ASSERT_EQ(category, 1);
}

}  // namespace
}  // namespace shale
