// Tests counts of values: over random layouts, dtypes, budgets and numbers of threads. The oracle
// compares each element with the edges of each bin.
#include "shale/histograms.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/mapped_file.hpp"
#include "shale/ops.hpp"
#include "shale/tile_source.hpp"
#include "support/bounded.hpp"
#include "support/counted_tiles.hpp"
#include "support/element_types.hpp"
#include "support/failures.hpp"
#include "support/instrumented.hpp"
#include "support/order_oracle.hpp"
#include "support/random_tensors.hpp"
#include "support/scratch_directory.hpp"
#include "support/tensor_tiles.hpp"

namespace shale {
namespace {

using test::any_elements;
using test::code_of;
using test::elements_of;
using test::number_of;
using test::random_choices;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();

/// Adds each element's weight to the bin between its edges; the last bin has both of its edges.
template <class T>
std::vector<double> binned(const std::vector<T>& elements, const std::vector<double>& weights,
                           const std::vector<double>& edges) {
  std::vector<double> sums(edges.size() - 1, 0);
  for (std::size_t i = 0; i < elements.size(); ++i)
    for (std::size_t bin = 0; bin < sums.size(); ++bin) {
      const double x = number_of<T>(elements[i]);
      const bool last = bin + 1 == sums.size();
      if (x >= edges[bin] && (x < edges[bin + 1] || (last && x == edges[bin + 1])))
        sums[bin] += weights[i];
    }
  return sums;
}

std::vector<double> as_numbers(const std::vector<std::int64_t>& counts) {
  return {counts.begin(), counts.end()};
}

template <class T>
class Histograms : public testing::Test {};
using element_list =
    test::element_types<bool, std::int8_t, std::int32_t, std::int64_t, std::uint16_t, float16,
                        bfloat16, float, double, float8_e4m3fn>;
TYPED_TEST_SUITE(Histograms, element_list);

TYPED_TEST(Histograms, CountWhatLiesBetweenEdges) {
  using T = TypeParam;
  for (std::uint64_t seed = 0; seed < test::cases(80); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape = test::random_shape(choose, {.axes_max = 4, .longest = 9});
    const tensor values = any_elements<T>(choose, shape);
    const tensor weights = test::random_tensor<float>(choose, shape);
    const auto elements = elements_of<T>(values);
    const std::vector<double> ones(elements.size(), 1);
    std::vector<double> given;
    for (const float weight : elements_of<float>(weights)) given.push_back(weight);
    const auto low = static_cast<double>(choose(-20, 20));
    const value_range range{low, low + static_cast<double>(choose(1, 1000)) / 7};
    const index_t bins = choose(1, 12);
    dims tile = shape;
    for (index_t& extent : tile) extent = choose(1, std::max<index_t>(extent, 1));
    const auto tiles = std::make_shared<test::tensor_tiles>(eval(values), tile);
    for (const std::size_t budget : {std::size_t{1} << 30, std::size_t{1} << 11}) {
      executor on({.threads = static_cast<int>(choose(1, 4)), .memory_bytes = budget});
      const executor::scope within(on);
      const binned_counts counted = histogram(expr(values).flip().flip(), bins, {.range = range});
      const auto edges = elements_of<double>(counted.edges);
      ASSERT_EQ(edges.size(), static_cast<std::size_t>(bins) + 1);
      ASSERT_EQ(edges.front(), range.low);
      ASSERT_EQ(edges.back(), range.high);
      const auto wanted = binned(elements, ones, edges);
      ASSERT_EQ(as_numbers(elements_of<std::int64_t>(counted.counts)), wanted);
      ASSERT_EQ(as_numbers(elements_of<std::int64_t>(histogram(values, counted.edges).counts)),
                wanted);
      ASSERT_EQ(
          as_numbers(elements_of<std::int64_t>(
              histogram(std::shared_ptr<const tile_source>(tiles), bins, {.range = range}).counts)),
          wanted);
      ASSERT_EQ(elements_of<double>(
                    histogram(values, bins, {.range = range, .weights = expr(weights)}).counts),
                binned(elements, given, edges));
    }
  }
}

template <class T>
class Bincounts : public testing::Test {};
using integer_list =
    test::element_types<bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                        std::uint16_t, std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(Bincounts, integer_list);

TYPED_TEST(Bincounts, CountWholeNumbers) {
  using T = TypeParam;
  for (std::uint64_t seed = 0; seed < test::cases(80); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape = test::random_shape(choose, {.axes_max = 4, .longest = 9});
    const tensor values = test::random_tensor<T>(choose, shape);
    const tensor weights = test::random_tensor<double>(choose, shape);
    const auto elements = elements_of<T>(values);
    const auto given = elements_of<double>(weights);
    const index_t length_min = choose(0, 20);
    std::vector<double> counts(static_cast<std::size_t>(length_min), 0), sums = counts;
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const auto number = static_cast<std::size_t>(elements[i]);
      if (number >= counts.size()) {
        counts.resize(number + 1, 0);
        sums.resize(number + 1, 0);
      }
      counts[number] += 1;
      sums[number] += given[i];
    }
    for (const std::size_t budget : {std::size_t{1} << 30, std::size_t{1} << 11}) {
      executor on({.threads = static_cast<int>(choose(1, 4)), .memory_bytes = budget});
      const executor::scope within(on);
      ASSERT_EQ(as_numbers(elements_of<std::int64_t>(
                    bincount(expr(values).flip().flip(), std::nullopt, length_min))),
                counts);
      ASSERT_EQ(elements_of<double>(bincount(values, expr(weights), length_min)), sums);
    }
  }
}

// Sums of floats would show another order of their terms.
TEST(HistogramRules, WeightsAreAddedInRowMajorOrder) {
  const index_t count = 200000;
  const tensor x = eval(astype(expr(arange(count)) * 7919 % 13, dtype::int32));
  const tensor weights = eval(1 / (expr(arange(count)) % 1009 + 0.3));
  std::vector<double> wanted(13, 0);
  const auto numbers = elements_of<std::int32_t>(x);
  const auto given = elements_of<double>(weights);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    wanted[static_cast<std::size_t>(numbers[i])] += given[i];
  for (const int threads : {1, 2, 4})
    for (const std::size_t budget : {std::size_t{1} << 30, std::size_t{1} << 16}) {
      executor on({.threads = threads, .memory_bytes = budget});
      const executor::scope within(on);
      ASSERT_EQ(elements_of<double>(bincount(x, expr(weights))), wanted);
      ASSERT_EQ(
          elements_of<double>(
              histogram(x, 13, {.range = value_range{0, 13}, .weights = expr(weights)}).counts),
          wanted);
    }
}

TEST(HistogramRules, RangesComeFromTheElements) {
  const binned_counts found = histogram(tensor::of<float>({1, 2, 2, 5}), 4);
  EXPECT_EQ(elements_of<double>(found.edges), (std::vector<double>{1, 2, 3, 4, 5}));
  EXPECT_EQ(elements_of<std::int64_t>(found.counts), (std::vector<std::int64_t>{1, 2, 0, 1}));
  EXPECT_EQ(elements_of<double>(histogram(tensor::of<float>({3, 3}), 2).edges),
            (std::vector<double>{2.5, 3, 3.5}));
  EXPECT_EQ(elements_of<double>(histogram(tensor::zeros({0}, dtype::int8), 2).edges),
            (std::vector<double>{0, 0.5, 1}));
  EXPECT_EQ(
      elements_of<double>(histogram(tensor::of<float>({0, 1, 1, 3}), 2, {.density = true}).counts),
      (std::vector<double>{0.5, 1.0 / 6}));
  // The product of value and bins per value may overflow.
  const binned_counts narrow =
      histogram(tensor::of<double>({0, 5e-324, 1e-323}), 3, {.range = value_range{0, 1e-323}});
  std::int64_t total = 0;
  for (const std::int64_t count : elements_of<std::int64_t>(narrow.counts)) total += count;
  EXPECT_EQ(total, 3);
}

// Floats near 1e15 are 1/8 apart, so there are 9 different edges at most.
TEST(HistogramRules, BinsMayBeNarrowerThanTheDistanceOfFloats) {
  std::vector<double> elements;
  for (int i = 0; i <= 16; ++i) elements.push_back(1e15 + i % 9 * 0.125);
  const tensor x = eval(expr(arange(17)) % 9 * 0.125 + 1e15);
  for (const index_t bins : {7, 8, 9, 100, 1000}) {
    const binned_counts found = histogram(x, bins, {.range = value_range{1e15, 1e15 + 1}});
    EXPECT_EQ(as_numbers(elements_of<std::int64_t>(found.counts)),
              binned(elements, std::vector<double>(17, 1), elements_of<double>(found.edges)))
        << bins;
  }
}

TEST(HistogramRules, TheWidthOfARangeMayOverflow) {
  const std::vector<double> elements{-1.5e308, -1e308, -4e307, 0, 4e307, 1e308, 1.5e308};
  const tensor x = tensor::of<double>({-1.5e308, -1e308, -4e307, 0, 4e307, 1e308, 1.5e308});
  for (const index_t bins : {1, 3, 4, 100}) {
    const binned_counts found = histogram(x, bins);
    const auto edges = elements_of<double>(found.edges);
    EXPECT_EQ(edges.front(), -1.5e308);
    EXPECT_EQ(edges.back(), 1.5e308);
    for (std::size_t i = 0; i < edges.size(); ++i)
      EXPECT_NEAR(edges[i] / 1.5e308, 2 * static_cast<double>(i) / static_cast<double>(bins) - 1,
                  1e-15);
    EXPECT_EQ(as_numbers(elements_of<std::int64_t>(found.counts)),
              binned(elements, std::vector<double>(7, 1), edges))
        << bins;
  }
  const auto density = elements_of<double>(histogram(x, 1, {.density = true}).counts);
  EXPECT_NEAR(density[0] * 1e308, 1.0 / 3, 1e-12);
}

// Steps along runs of equal edges would take minutes.
TEST(HistogramRules, ManyEqualEdgesAreSearched) {
  test::expect_to_end([] {
    const expr x = expr(arange(1 << 20)) % 8 * 0.125 + 1e15;
    const tensor counts = histogram(x, 1 << 22, {.range = value_range{1e15, 1e15 + 1}}).counts;
    EXPECT_EQ(eval(sum(expr(counts))).item().as<index_t>(), 1 << 20);
    EXPECT_EQ(eval(max(expr(counts))).item().as<index_t>(), 1 << 17);
  });
}

TEST(HistogramRules, TheRangeOfOneValueHasAWidth) {
  constexpr double most = std::numeric_limits<double>::max();
  for (const double value : {0.0, -3.0, 0x1p53, -0x1p60, 1e17, most, -most}) {
    const auto found = histogram(tensor::of<double>({value, value}), 1, {.density = true});
    const auto edges = elements_of<double>(found.edges);
    EXPECT_LE(edges[0], value);
    EXPECT_GE(edges[1], value);
    EXPECT_GE(edges[1] - edges[0], 1);
    EXPECT_EQ(elements_of<double>(found.counts)[0], 1 / (edges[1] - edges[0]));
    if (std::abs(value) < 10) {
      EXPECT_EQ(edges, (std::vector<double>{value - 0.5, value + 0.5}));
    }
  }
}

TEST(HistogramRules, BadArgumentsAreErrors) {
  const tensor x = tensor::of<float>({1, 2, 3});
  const tensor with_nan = tensor::of<double>({1, nan, 3});
  const tensor complex = tensor::zeros({3}, dtype::complex64);
  const auto refuses = [](auto call) { EXPECT_EQ(code_of(call), errc::invalid_argument); };
  refuses([&] { histogram(x, 0); });
  refuses([&] { histogram(x, -3); });
  refuses([&] { histogram(x, 3, {.range = value_range{2, 1}}); });
  refuses([&] { histogram(x, 3, {.range = value_range{nan, 1}}); });
  refuses([&] { histogram(x, 3, {.range = value_range{0, infinite}}); });
  refuses([&] { histogram(with_nan, 3); });
  refuses([&] { histogram(complex, 3); });
  refuses([&] { histogram(x, 3, {.weights = expr(tensor::of<float>({1, 2}))}); });
  refuses([&] { histogram(x, 3, {.weights = expr(complex)}); });
  refuses([&] { histogram(x, tensor::of<float>({1, 3, 2})); });
  refuses([&] { histogram(x, tensor::of<double>({1, nan})); });
  refuses([&] { histogram(x, tensor::zeros({0}, dtype::float32)); });
  refuses([&] { histogram(x, tensor::zeros({2, 2}, dtype::float32)); });
  refuses([&] { histogram(x, complex); });
  refuses([&] { histogram(x, x, {.range = value_range{0, 1}}); });
  refuses([&] { bincount(x); });
  refuses([&] { bincount(tensor::of<std::int32_t>({1, -1})); });
  refuses([&] { bincount(tensor::of<std::int32_t>({1, -1}), expr(tensor::of<float>({1, 1}))); });
  refuses([&] { bincount(tensor::of<std::int32_t>({1, 2}), std::nullopt, -1); });
  refuses([&] { bincount(tensor::of<std::int32_t>({1, 2}), expr(x)); });
  EXPECT_EQ(histogram(x, tensor::of<float>({1})).counts.shape(), dims{0});
}

TEST(HistogramRules, CountsBeyondTheBudgetAreErrors) {
  executor little({.threads = 2, .memory_bytes = std::size_t{1} << 16});
  const executor::scope within(little);
  const auto exhausts = [](auto call) { EXPECT_EQ(code_of(call), errc::out_of_memory); };
  const tensor large = tensor::of<std::uint64_t>({1, std::numeric_limits<std::uint64_t>::max()});
  exhausts([&] { bincount(large); });
  exhausts([&] { bincount(tensor::of<std::int64_t>({std::int64_t{1} << 40})); });
  exhausts([&] { bincount(large, expr(large)); });
  exhausts([&] { bincount(tensor::of<std::int8_t>({1}), std::nullopt, index_t{1} << 40); });
  exhausts([&] { histogram(large, index_t{1} << 40); });
}

// Reductions and scans are computed once, not for each slab.
TEST(HistogramsInSlabs, ComputeWhatTheyDependOnOnce) {
  const index_t tiles = 60;
  const auto source = std::make_shared<test::counted_tiles>(tiles * 100);
  const expr x(source);
  const expr distance = x - mean(x), sums = cumulative_sum(x) % 1000;
  const value_range range{-5000, 5000};
  const std::function<tensor()> calls[] = {
      [&] { return histogram(distance, 10, {.range = range}).counts; },
      [&] { return histogram(sums, 10, {.range = range}).counts; },
      [&] { return histogram(x, 10, {.range = range, .weights = distance}).counts; },
      [&] { return bincount((x + min(x)) % 100); }, [&] { return bincount(x % 100, sums); }};
  executor large({.threads = 2, .memory_bytes = std::size_t{1} << 30});
  executor small({.threads = 2, .memory_bytes = 6000});
  for (const auto& call : calls) {
    const auto counted = [&](executor& on) {
      const executor::scope within(on);
      return elements_of<double>(eval(astype(expr(call()), dtype::float64)));
    };
    const auto wanted = counted(large);
    source->loads = 0;
    EXPECT_EQ(counted(small), wanted);
    EXPECT_LT(source->loads, 12 * tiles);
  }
}

TEST(HistogramsOfFiles, LargerThanTheBudgetAreReadOnce) {
  const test::scratch_directory directory;
  const index_t count = 300000;
  const tensor values = eval(astype(expr(arange(count)) * 7919 % 300007, dtype::int32));
  const tensor mapped(create_file(directory.path() + "/x.bin", count * 4), dtype::int32,
                      layout({count}));
  copy(mapped, values);
  executor little({.threads = 2, .memory_bytes = std::size_t{1} << 18});
  const executor::scope within(little);
  const tensor counts = histogram(mapped, 100, {.range = value_range{0, 300000}}).counts;
  EXPECT_EQ(little.statistics().bytes_read, static_cast<std::uint64_t>(count) * 4);
  EXPECT_EQ(
      elements_of<std::int64_t>(counts),
      elements_of<std::int64_t>(histogram(values, 100, {.range = value_range{0, 300000}}).counts));
  EXPECT_EQ(elements_of<std::int64_t>(bincount(expr(mapped) / 1000 >= 100)),
            elements_of<std::int64_t>(bincount(expr(values) / 1000 >= 100)));
}

}  // namespace
}  // namespace shale
