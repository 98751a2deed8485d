// Tests elements by their rank: over random layouts, dtypes, axes, budgets and numbers of threads.
// The oracle is a stable sort of the indices of each lane.
#include "shale/order_statistics.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/mapped_file.hpp"
#include "shale/ops.hpp"
#include "shale/tile_source.hpp"
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
using test::for_each_lane_of;
using test::index_list;
using test::number_of;
using test::order_of;
using test::precedes;
using test::random_choices;
using test::same_bits;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// The first k elements of the order of each lane along an axis. The oracle takes most of the time.
/// So it is asked once, however many results are compared with it.
template <class T>
class wanted_first {
 public:
  wanted_first(const tensor& values, index_t axis, index_t k, bool descends)
      : axis_(axis), shape_(values.shape()) {
    shape_[axis] = k;
    for_each_lane_of<T>(values, axis, [&](const auto& own, const auto&) {
      index_list order = order_of(own, descends);
      order.resize(static_cast<std::size_t>(k));
      std::vector<T> first;
      for (const index_t index : order) first.push_back(own[static_cast<std::size_t>(index)]);
      indices_.push_back(order);
      elements_.push_back(first);
    });
  }

  void expect(const ranked_elements& found) const {
    ASSERT_EQ(found.values.shape(), shape_);
    ASSERT_EQ(found.indices.shape(), shape_);
    std::size_t lane = 0;
    for_each_lane_of<T>(found.values, axis_, [&](const auto& own, const auto&) {
      ASSERT_TRUE(same_bits(own, elements_[lane++]));
    });
    lane = 0;
    for_each_lane_of<std::int64_t>(found.indices, axis_, [&](const auto& own, const auto&) {
      ASSERT_EQ(own, indices_[lane++]);
    });
  }

 private:
  index_t axis_;
  dims shape_;  // of a result
  std::vector<index_list> indices_;
  std::vector<std::vector<T>> elements_;
};

template <class T>
class OrderStatistics : public testing::Test {};
using element_list =
    test::element_types<bool, std::int8_t, std::int32_t, std::int64_t, std::uint16_t, std::uint64_t,
                        float16, bfloat16, float, double, float8_e4m3fn>;
TYPED_TEST_SUITE(OrderStatistics, element_list);

// rank.1
TYPED_TEST(OrderStatistics, FindTheFirstOfAnyLayoutBudgetAndAxis) {
  using T = TypeParam;
  for (std::uint64_t seed = 0; seed < test::cases(60); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    dims shape = test::random_shape(choose, {.axes_max = 4, .longest = 9});
    if (shape.empty()) shape.push_back(choose(0, 300));
    const tensor values = any_elements<T>(choose, shape);
    const tensor row_major = eval(values);
    dims tile = shape;
    for (index_t& extent : tile) extent = choose(1, std::max<index_t>(extent, 1));
    const auto source = std::make_shared<test::tensor_tiles>(row_major, tile);
    for (index_t axis = 0; axis < shape.size(); ++axis) {
      const index_t k = choose(0, shape[axis]);
      for (const largest end : {largest::no, largest::yes}) {
        const wanted_first<T> wanted(values, axis, k, end == largest::yes);
        wanted.expect(topk(values, k, axis, end));
        // A little budget cuts the operand into slabs.
        executor little({.threads = 2, .memory_bytes = static_cast<std::size_t>(choose(16, 800))});
        const executor::scope within(little);
        wanted.expect(topk(expr(values).flip().flip(), k, axis, end));
        executor tiles({.threads = 2, .memory_bytes = 1 << 12});
        const executor::scope also(tiles);
        wanted.expect(topk(std::shared_ptr<const tile_source>(source), k, axis, end));
      }
    }
  }
}

// rank.1, rank.2
TYPED_TEST(OrderStatistics, OfALongLaneAreTheSameForAnyNumberOfThreads) {
  using T = TypeParam;
  random_choices choose(5);
  for (int round = 0; round < test::repeats(3); ++round) {
    const tensor values = any_elements<T>(choose, {140001});
    const auto elements = elements_of<T>(values);
    const index_list order = order_of(elements, false);
    const wanted_first<T> last(values, 0, 100, true), first(values, 0, 40000, false);
    for (const int threads : {1, 2, 4}) {
      executor on({.threads = threads});
      const executor::scope within(on);
      last.expect(topk(values, 100, 0));
      first.expect(topk(values, 40000, 0, largest::no));
      for (const index_t k : {index_t{1}, index_t{70001}, index_t{140001}}) {
        const ranked_elements found = kthvalue(values, k);
        const auto index = order[static_cast<std::size_t>(k) - 1];
        ASSERT_EQ(found.indices.item().template as<index_t>(), index);
        ASSERT_TRUE(same_bits(elements_of<T>(found.values),
                              std::vector<T>{elements[static_cast<std::size_t>(index)]}));
      }
    }
  }
}

TYPED_TEST(OrderStatistics, FindRanksAndModesAlongAnyAxis) {
  using T = TypeParam;
  for (std::uint64_t seed = 0; seed < test::cases(60); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape =
        test::random_shape(choose, {.axes_max = 4, .longest = 9, .may_be_empty = false});
    const tensor values = any_elements<T>(choose, shape);
    for (index_t axis = 0; axis < shape.size(); ++axis) {
      const index_t k = choose(1, shape[axis]);
      const ranked_elements kth = kthvalue(values, k, axis), modes = mode(values, axis);
      const auto kth_indices = elements_of<std::int64_t>(kth.indices);
      const auto kth_values = elements_of<T>(kth.values);
      const auto mode_indices = elements_of<std::int64_t>(modes.indices);
      const auto mode_values = elements_of<T>(modes.values);
      std::size_t lane = 0;
      for_each_lane_of<T>(values, axis, [&](const auto& own, const auto&) {
        const index_list order = order_of(own, false);
        ASSERT_EQ(kth_indices[lane], order[static_cast<std::size_t>(k) - 1]);
        std::size_t best = 0, most = 0;
        for (std::size_t i = 0; i < order.size(); ++i) {
          std::size_t end = i;
          while (end < order.size() && !precedes<T>(own[static_cast<std::size_t>(order[i])],
                                                    own[static_cast<std::size_t>(order[end])]))
            ++end;
          if (end - i > most) {
            most = end - i;
            best = i;
          }
        }
        ASSERT_EQ(mode_indices[lane], order[best]);
        const std::vector<T> found{kth_values[lane], mode_values[lane]};
        const std::vector<T> wanted{own[static_cast<std::size_t>(kth_indices[lane])],
                                    own[static_cast<std::size_t>(mode_indices[lane])]};
        ASSERT_TRUE(same_bits(found, wanted));
        ++lane;
      });
    }
  }
}

TEST(Quantiles, AreBetweenTheElementsOfTheirRanks) {
  for (std::uint64_t seed = 0; seed < test::cases(100); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape =
        test::random_shape(choose, {.axes_max = 3, .longest = 9, .may_be_empty = false});
    const tensor values = test::random_tensor<double>(choose, shape);
    for (index_t axis = 0; axis < shape.size(); ++axis) {
      const auto q = static_cast<double>(choose(0, 20)) / 20;
      std::vector<double> wanted[6];
      for_each_lane_of<double>(values, axis, [&](const auto& own, const auto&) {
        std::vector<double> sorted;
        for (const index_t index : order_of(own, false))
          sorted.push_back(own[static_cast<std::size_t>(index)]);
        const std::size_t n = sorted.size();
        const double exact = q * static_cast<double>(n - 1);
        const auto low = static_cast<std::size_t>(exact);
        const std::size_t high = std::min(n - 1, exact > std::floor(exact) ? low + 1 : low);
        const double share = exact - std::floor(exact);
        wanted[0].push_back(sorted[low] + (sorted[high] - sorted[low]) * share);
        wanted[1].push_back(sorted[low]);
        wanted[2].push_back(sorted[high]);
        wanted[3].push_back((sorted[low] + sorted[high]) / 2);
        wanted[4].push_back(sorted[static_cast<std::size_t>(std::nearbyint(exact))]);
        wanted[5].push_back((sorted[(n - 1) / 2] + sorted[n / 2]) / 2);
      });
      for (std::uint8_t method = 0; method < 5; ++method) {
        const auto found =
            elements_of<double>(quantile(values, q, axis, static_cast<quantile_method>(method)));
        ASSERT_EQ(found.size(), wanted[method].size());
        for (std::size_t i = 0; i < found.size(); ++i)
          ASSERT_NEAR(found[i], wanted[method][i], 1e-13) << int{method};
      }
      ASSERT_EQ(elements_of<double>(median(values, axis)), wanted[5]);
    }
  }
}

// Lanes have different numbers of elements that count; some have none.
TEST(Quantiles, WithoutNanAreThoseOfTheNumbers) {
  executor large({.threads = 2});
  executor little({.threads = 2, .memory_bytes = 400});
  for (std::uint64_t seed = 0; seed < test::cases(60); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape =
        test::random_shape(choose, {.axes_max = 3, .longest = 12, .may_be_empty = false});
    const tensor whole = test::random_tensor<double>(choose, shape);
    const tensor values = eval(where(expr(whole) % 3 == 0, nan, whole));
    const auto q = static_cast<double>(choose(0, 20)) / 20;
    const auto wanted_of = [&](const std::vector<double>& own, double share_below) {
      std::vector<double> sorted;
      for (const double x : own)
        if (!std::isnan(x)) sorted.push_back(x);
      if (sorted.empty()) return nan;
      std::sort(sorted.begin(), sorted.end());
      const double exact = share_below * static_cast<double>(sorted.size() - 1);
      const auto low = static_cast<std::size_t>(exact);
      const std::size_t high = std::min(sorted.size() - 1, low + 1);
      return sorted[low] + (sorted[high] - sorted[low]) * (exact - std::floor(exact));
    };
    const auto expect = [&](const tensor& found, double share_below, std::optional<index_t> axis) {
      std::vector<double> wanted;
      if (!axis) wanted.push_back(wanted_of(elements_of<double>(values), share_below));
      else
        for_each_lane_of<double>(values, *axis, [&](const auto& own, const auto&) {
          wanted.push_back(wanted_of(own, share_below));
        });
      const auto got = elements_of<double>(found);
      ASSERT_EQ(got.size(), wanted.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        if (std::isnan(wanted[i])) ASSERT_TRUE(std::isnan(got[i]));
        else ASSERT_NEAR(got[i], wanted[i], 1e-13);
      }
    };
    for (executor* on : {&large, &little}) {
      const executor::scope within(*on);
      for (const expr& x : {expr(values), expr(values).flip().flip() * 1}) {
        for (index_t axis = 0; axis < shape.size(); ++axis) {
          expect(nanquantile(x, q, axis), q, axis);
          expect(nanmedian(x, axis), 0.5, axis);
          const tensor several = nanquantile(x, {q, 1.0}, axis);
          expect(several.select(0, 0), q, axis);
          expect(several.select(0, 1), 1, axis);
        }
        expect(nanquantile(x, q), q, std::nullopt);
        expect(nanmedian(x), 0.5, std::nullopt);
      }
    }
  }
}

TEST(Quantiles, WithoutNanOfLongLanesAreThoseOfTheNumbers) {
  const expr numbers = astype(expr(arange(300000)) * 7919 % 300007, dtype::float32);
  const tensor values = eval(where(arange(300000) % 3 == 0, nan, numbers).reshape({2, 150000}));
  for (const int threads : {1, 4}) {
    executor on({.threads = threads});
    const executor::scope within(on);
    const auto found = elements_of<float>(nanquantile(values, 0.25, 1, quantile_method::lower));
    std::size_t lane = 0;
    for_each_lane_of<float>(values, 1, [&](const auto& own, const auto&) {
      std::vector<float> sorted;
      for (const float x : own)
        if (!std::isnan(x)) sorted.push_back(x);
      std::sort(sorted.begin(), sorted.end());
      EXPECT_EQ(found[lane++], sorted[(sorted.size() - 1) / 4]);
    });
  }
}

TEST(Quantiles, WithoutNanOfIntegersAreThePlainOnes) {
  const tensor whole = tensor::of<std::int32_t>({4, 1, 3, 2});
  EXPECT_EQ(nanmedian(whole).dtype(), dtype::float64);
  EXPECT_EQ(nanmedian(whole).item().as<double>(), 2.5);
  EXPECT_EQ(nanmedian(tensor::of<float>({1, 2})).dtype(), dtype::float32);
  EXPECT_TRUE(std::isnan(nanmedian(tensor::of<double>({nan, -nan})).item().as<double>()));
  constexpr double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(nanmedian(tensor::of<double>({nan, infinite, infinite, 1})).item().as<double>(),
            infinite);
}

TEST(Quantiles, OfLongLanesAreThoseOfSortedOnes) {
  const tensor values = eval(astype(expr(arange(200000)) * 7919 % 200003, dtype::float32));
  for (const int threads : {1, 2, 4}) {
    executor on({.threads = threads});
    const executor::scope within(on);
    std::vector<float> sorted = elements_of<float>(values);
    std::sort(sorted.begin(), sorted.end());
    const auto found = elements_of<float>(
        quantile(values, {0, 0.25, 0.25, 0.9, 1}, std::nullopt, quantile_method::lower));
    EXPECT_EQ(found, (std::vector<float>{sorted[0], sorted[49999], sorted[49999], sorted[179999],
                                         sorted[199999]}));
  }
}

TEST(Quantiles, HaveTheDtypesAndSpecialValuesOfMeans) {
  EXPECT_EQ(median(tensor::of<std::int32_t>({1, 2})).dtype(), dtype::float64);
  EXPECT_EQ(median(tensor::of<std::int32_t>({1, 2})).item().as<double>(), 1.5);
  EXPECT_EQ(median(tensor::of<bool>({true, false})).item().as<double>(), 0.5);
  EXPECT_EQ(median(tensor::of<float>({1, 2, 8, 4})).dtype(), dtype::float32);
  EXPECT_EQ(quantile(tensor::zeros({3, 4}, dtype::float16), {0.5, 1}, 1).shape(), (dims{2, 3}));
  EXPECT_TRUE(std::isnan(median(tensor::of<double>({1, nan, 2})).item().as<double>()));
  EXPECT_TRUE(std::isnan(quantile(tensor::of<double>({1, -nan, 2}), 0.0).item().as<double>()));
  constexpr double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(median(tensor::of<double>({infinite, infinite})).item().as<double>(), infinite);
  constexpr double most = std::numeric_limits<double>::max();
  EXPECT_EQ(median(tensor::of<double>({most, most})).item().as<double>(), most);
  EXPECT_EQ(median(tensor::of<double>({-most, most})).item().as<double>(), 0);
}

TEST(Quantiles, BetweenElementsThatAreFarApartAreBetweenThem) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  constexpr double most = std::numeric_limits<double>::max();
  const auto between = [](double low, double high, double q) {
    return quantile(tensor::of<double>({low, high}), q).item().as<double>();
  };
  EXPECT_EQ(between(-most, most, 0.5), 0);
  EXPECT_DOUBLE_EQ(between(-most, most, 0.25), -most / 2);
  EXPECT_DOUBLE_EQ(between(-most, most, 0.75), most / 2);
  for (const double q : {0.25, 0.5, 0.75}) {
    EXPECT_EQ(between(1, infinite, q), infinite) << q;
    EXPECT_EQ(between(-infinite, 1, q), -infinite) << q;
    EXPECT_TRUE(std::isnan(between(-infinite, infinite, q))) << q;
  }
  EXPECT_EQ(between(1, infinite, 0), 1);
}

TEST(Quantiles, BetweenTheSmallestNumbersAreRoundedOnce) {
  const double unit = std::numeric_limits<double>::denorm_min();
  EXPECT_EQ(eval(median(tensor::of<double>({unit, 2 * unit}))).item(), scalar(2 * unit));
  EXPECT_EQ(eval(median(tensor::of<double>({unit, 4 * unit}))).item(), scalar(2 * unit));
  constexpr double large = std::numeric_limits<double>::max();
  EXPECT_EQ(eval(median(tensor::of<double>({large, large / 2}))).item(), scalar(large / 4 * 3));
}

TEST(OrderStatisticsErrors, AreInvalidArguments) {
  const tensor x = tensor::zeros({2, 3}, dtype::float32);
  const tensor none = tensor::zeros({2, 0}, dtype::float32);
  const tensor complex = tensor::zeros({3}, dtype::complex128);
  const tensor tiny = tensor::zeros({3}, dtype::float8_e5m2);
  const auto refuses = [](auto call) { EXPECT_EQ(code_of(call), errc::invalid_argument); };
  refuses([&] { topk(x, 4); });
  refuses([&] { topk(x, -1); });
  refuses([&] { topk(x, 1, 2); });
  refuses([&] { topk(complex, 1); });
  refuses([&] { topk(tensor::zeros({}, dtype::float32), 0); });
  refuses([&] { kthvalue(x, 0); });
  refuses([&] { kthvalue(x, 4); });
  refuses([&] { kthvalue(x, 1, -3); });
  refuses([&] { kthvalue(none, 1); });
  refuses([&] { kthvalue(complex, 1); });
  refuses([&] { mode(none); });
  refuses([&] { mode(complex); });
  refuses([&] { median(none); });
  refuses([&] { median(none, 1); });
  refuses([&] { median(complex); });
  refuses([&] { median(tiny); });
  refuses([&] { quantile(x, 1.5); });
  refuses([&] { quantile(x, -0.1); });
  refuses([&] { quantile(x, nan); });
  refuses([&] { quantile(x, {0.5, 2.0}, 0); });
  refuses([&] { quantile(none, 0.5, 1); });
  refuses([&] { nanmedian(none, 1); });
  refuses([&] { nanmedian(complex); });
  refuses([&] { nanquantile(tiny, 0.5); });
  refuses([&] { nanquantile(x, 1.5); });
  refuses([&] { nanquantile(x, {0.5, 0.75}, 0, static_cast<quantile_method>(5)); });
  EXPECT_EQ(nanmedian(none, 0).shape(), dims{0});
  refuses([&] { quantile(x, 0.5, 0, static_cast<quantile_method>(5)); });
  EXPECT_EQ(median(none, 0).shape(), dims{0});
  EXPECT_EQ(mode(none, 0).values.shape(), dims{0});
  EXPECT_EQ(topk(none, 0).values.shape(), (dims{2, 0}));
}

// Reductions and scans are computed once, not for each slab.
TEST(Topk, InSlabsComputesWhatTheyDependOnOnce) {
  const index_t tiles = 60;
  const auto source = std::make_shared<test::counted_tiles>(tiles * 100);
  const expr x(source);
  executor large({.threads = 2, .memory_bytes = std::size_t{1} << 30});
  executor small({.threads = 2, .memory_bytes = 6000});
  for (const expr& value : {abs(x - max(x) / 2), cumulative_sum(x) % 5003}) {
    const auto found = [&](executor& on) {
      const executor::scope within(on);
      return elements_of<std::int64_t>(topk(value, 10).indices);
    };
    const auto wanted = found(large);
    source->loads = 0;
    EXPECT_EQ(found(small), wanted);
    EXPECT_LT(source->loads, 12 * tiles);
  }
}

TEST(OrderStatisticsOfFiles, LargerThanTheBudgetAreFoundInOneRead) {
  const test::scratch_directory directory;
  const index_t count = 300000;
  const tensor values = eval(astype(expr(arange(count)) * 7919 % 300007, dtype::int32));
  const tensor mapped(create_file(directory.path() + "/x.bin", count * 4), dtype::int32,
                      layout({count}));
  copy(mapped, values);
  executor little({.threads = 2, .memory_bytes = std::size_t{1} << 18});
  const executor::scope within(little);
  const ranked_elements found = topk(mapped, 50);
  EXPECT_EQ(little.statistics().bytes_read, static_cast<std::uint64_t>(count) * 4);
  wanted_first<std::int32_t>(values, 0, 50, true).expect(found);
  const tensor matrix = mapped.reshape({300, 1000});
  wanted_first<std::int32_t>(values.reshape({300, 1000}), 0, 7, false)
      .expect(topk(matrix, 7, 0, largest::no));
}

}  // namespace
}  // namespace shale
