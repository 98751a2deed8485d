// Tests elements by rank among elements that come part by part, and quantiles of operands that are
// larger than the memory budget. The oracle is a stable sort of the indices of all elements.
#include "ops/sorting/rank_search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/mapped_file.hpp"
#include "shale/order_statistics.hpp"
#include "shale/tile_source.hpp"
#include "support/element_types.hpp"
#include "support/failures.hpp"
#include "support/instrumented.hpp"
#include "support/order_oracle.hpp"
#include "support/random_tensors.hpp"
#include "support/run_on.hpp"
#include "support/scratch_directory.hpp"
#include "support/tensor_tiles.hpp"

namespace shale {
namespace {

using ops::part_loop;
using ops::search_ranks;
using test::any_elements;
using test::code_of;
using test::elements_of;
using test::index_list;
using test::order_of;
using test::precedes;
using test::random_choices;
using test::run_on;

using part_body = std::function<void(const tensor&)>;

/// Gives the elements of a tensor in parts of any length, and counts how often it does.
class parts_of {
 public:
  parts_of(const tensor& values, random_choices& choose) {
    for (index_t at = 0; at < values.size();) {
      const index_t length = std::min(values.size() - at, choose(1, 2000));
      parts_.push_back(values.narrow(0, at, length));
      at += length;
    }
  }

  part_loop loop() {
    return [this](const part_body& body) {
      ++passes_;
      for (const tensor& part : parts_) body(part);
    };
  }
  int passes() const { return passes_; }

 private:
  std::vector<tensor> parts_;
  int passes_ = 0;
};

template <class T>
class RankSearchOfTypes : public testing::Test {};
using element_list =
    test::element_types<bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                        std::uint16_t, std::uint32_t, std::uint64_t, float16, bfloat16, float,
                        double, float8_e4m3fn, float8_e5m2>;
TYPED_TEST_SUITE(RankSearchOfTypes, element_list);

// search.1, search.2
TYPED_TEST(RankSearchOfTypes, FindsRanksInAnyParts) {
  using T = TypeParam;
  for (std::uint64_t seed = 0; seed < test::cases(40); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const index_t count = choose(1, 6000);
    const tensor values = any_elements<T>(choose, {count}).contiguous();
    const auto elements = elements_of<T>(values);
    const index_list order = order_of(elements, false);
    std::vector<index_t> ranks{count - 1, 0};
    for (index_t more = choose(0, 12); more > 0; --more) ranks.push_back(choose(0, count - 1));
    parts_of parts(values, choose);
    executor on({.threads = static_cast<int>(choose(1, 4))});
    const index_t gathered_max = choose(0, 1) == 0 ? choose(0, 50) : count;
    const auto found = search_ranks(values.dtype(), count, ranks, gathered_max, parts.loop(), on);
    const auto got = elements_of<T>(found.elements);
    ASSERT_EQ(got.size(), ranks.size());
    ASSERT_EQ(found.before.size(), ranks.size());
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const T wanted =
          elements[static_cast<std::size_t>(order[static_cast<std::size_t>(ranks[i])])];
      const T one = got[i];
      ASSERT_FALSE(precedes(one, wanted) || precedes(wanted, one)) << ranks[i];
      ASSERT_EQ(found.before[i],
                std::count_if(elements.begin(), elements.end(),
                              [&](const T& other) { return precedes(other, wanted); }));
    }
    if (sizeof(T) <= 2) {
      ASSERT_EQ(parts.passes(), 1);
    }
  }
}

// search.2: the numbers share their first 48 bits.
TEST(RankSearch, HoldsFewKeys) {
  random_choices choose(1);
  const tensor values = eval(arange(1000));
  executor on({.threads = 2});
  for (const auto& [gathered_max, passes] : {std::pair<index_t, int>{999, 4}, {1000, 2}}) {
    parts_of parts(values, choose);
    const auto found = search_ranks(dtype::int64, 1000, {500}, gathered_max, parts.loop(), on);
    EXPECT_EQ(found.elements.item().as<index_t>(), 500);
    EXPECT_EQ(found.before, std::vector<index_t>{500});
    EXPECT_EQ(parts.passes(), passes);
  }
}

TEST(RankSearch, TakesTwoPassesOverElementsOfFourBytes) {
  random_choices choose(2);
  const tensor values = eval(astype(arange(3000) % 7, dtype::float32));
  executor on({.threads = 2});
  for (const index_t gathered_max : {0, 10, 100000}) {
    parts_of parts(values, choose);
    const auto found = search_ranks(dtype::float32, 3000, {1500}, gathered_max, parts.loop(), on);
    EXPECT_EQ(found.elements.item().as<float>(), 3);
    EXPECT_EQ(parts.passes(), 2);
  }
}

// search.3
TEST(RankSearch, ElementsThatChangeAreRefused) {
  const tensor before = eval(arange(1000)), after = eval(full({1000}, index_t{1} << 60));
  executor on({.threads = 2});
  for (const index_t gathered_max : {index_t{0}, index_t{1000}}) {
    int passes = 0;
    const part_loop loop = [&](const part_body& body) { body(passes++ == 0 ? before : after); };
    EXPECT_EQ(code_of([&] { search_ranks(dtype::int64, 1000, {500}, gathered_max, loop, on); }),
              errc::io);
  }
}

TEST(RankSearch, IsCancelled) {
  random_choices choose(3);
  parts_of parts(eval(arange(1000)), choose);
  executor on({.threads = 2});
  on.cancel();
  EXPECT_EQ(code_of([&] { search_ranks(dtype::int64, 1000, {500}, 0, parts.loop(), on); }),
            errc::cancelled);
}

TEST(RankSearch, FindsTheEqualElementOfANumber) {
  const tensor part = tensor::of<float>({0.0F, 2, -0.0F, 2, 2, 1}), two = tensor::of<float>({2});
  float found = 0;
  auto* const to = reinterpret_cast<std::byte*>(&found);
  EXPECT_EQ(ops::find_equal(part, two, 0, to), 1);
  EXPECT_EQ(ops::find_equal(part, two, 2, to), 4);
  EXPECT_EQ(found, 2);
  EXPECT_EQ(ops::find_equal(part, two, 3, to), -1 - 3);
  EXPECT_EQ(ops::find_equal(part, tensor::of<float>({0}), 1, to), 2);
  EXPECT_TRUE(std::signbit(found));
  EXPECT_EQ(ops::find_equal(part, tensor::of<float>({5}), 0, to), -1);
}

class RanksOfFiles : public testing::Test {
 protected:
  tensor mapped(const tensor& values) {
    const storage bytes = create_file(folder_ / std::to_string(count_++), values.size_bytes());
    std::memcpy(bytes.data(), values.data(), values.size_bytes());
    return tensor(bytes, values.dtype(), layout(values.shape()));
  }

  // The numbers of any_elements, but no NaN, which would be the result everywhere.
  tensor numbers(const dims& shape) {
    const tensor any = any_elements<float>(choose_, shape);
    return eval(where(isnan(any), 1.5F, any));
  }

  void expect_as_in_memory(const tensor& values, const expr& larger, std::optional<index_t> axis) {
    executor small({.threads = 2, .memory_bytes = std::size_t{1} << 14});
    const std::vector<double> q{0.5, 0, 1, 0.25, 0.999};
    for (const quantile_method method : {quantile_method::linear, quantile_method::lower})
      EXPECT_TRUE(equal_bits(run_on(small, [&] { return quantile(larger, q, axis, method); }),
                             quantile(values, q, axis, method)));
    EXPECT_TRUE(
        equal_bits(run_on(small, [&] { return median(larger, axis); }), median(values, axis)));
  }

  test::scratch_directory folder_;
  random_choices choose_{7};
  int count_ = 0;
};

TEST_F(RanksOfFiles, AreThoseOfSortedElements) {
  const tensor values = numbers({50000});
  auto sorted = elements_of<float>(values);
  std::sort(sorted.begin(), sorted.end());
  executor small({.threads = 2, .memory_bytes = std::size_t{1} << 14});
  const tensor larger = mapped(values);
  for (const index_t rank : {0, 1, 24999, 31000, 49999}) {
    const double q = static_cast<double>(rank) / 49999;
    const tensor got =
        run_on(small, [&] { return quantile(larger, q, std::nullopt, quantile_method::nearest); });
    EXPECT_EQ(got.item().as<float>(), sorted[static_cast<std::size_t>(rank)]) << rank;
  }
}

TEST_F(RanksOfFiles, AreAsInMemoryAlongAnyAxis) {
  for (const dims& shape : {dims{40000}, dims{3, 9000}, dims{9000, 3}, dims{300, 100},
                            dims{20, 30, 40}, dims{2, 6000, 2}}) {
    SCOPED_TRACE(to_string(shape));
    const tensor values = numbers(shape), larger = mapped(values);
    dims tile = shape;
    for (index_t& extent : tile) extent = std::min<index_t>(extent, 50);
    const auto tiles = std::make_shared<test::tensor_tiles>(values, tile);
    expect_as_in_memory(values, larger, std::nullopt);
    expect_as_in_memory(values, std::shared_ptr<const tile_source>(tiles), std::nullopt);
    for (index_t axis = 0; axis < shape.size(); ++axis) {
      expect_as_in_memory(values, larger, axis);
      expect_as_in_memory(eval(expr(values) / 3 - min(values)), expr(larger) / 3 - min(larger),
                          axis);
    }
  }
}

TEST_F(RanksOfFiles, AreNanIfAnElementIs) {
  tensor values = numbers({3, 20000});
  values.set({1, 777}, std::numeric_limits<float>::quiet_NaN());
  const tensor larger = mapped(values);
  expect_as_in_memory(values, larger, 1);
  expect_as_in_memory(values, larger, std::nullopt);
}

// Each lane has other ranks, since another number of its elements is NaN.
TEST_F(RanksOfFiles, OfNumbersAloneAreAsInMemory) {
  for (const dims& shape : {dims{40000}, dims{3, 9000}, dims{9000, 3}, dims{300, 100}}) {
    SCOPED_TRACE(to_string(shape));
    const tensor values = eval(
        where(expr(numbers(shape)) > 1, std::numeric_limits<float>::quiet_NaN(), numbers(shape)));
    const tensor larger = mapped(values);
    executor small({.threads = 2, .memory_bytes = std::size_t{1} << 14});
    for (index_t axis = -1; axis < shape.size() - 1; ++axis) {
      EXPECT_TRUE(equal_bits(run_on(small, [&] { return nanquantile(larger, 0.3, axis); }),
                             nanquantile(values, 0.3, axis)));
      EXPECT_TRUE(equal_bits(run_on(small, [&] { return nanmedian(expr(larger) * 2, axis); }),
                             nanmedian(expr(values) * 2, axis)));
    }
    EXPECT_TRUE(equal_bits(run_on(small, [&] { return nanmedian(larger); }), nanmedian(values)));
  }
}

// Elements with their bits, and the first of equal ones by index.
TEST_F(RanksOfFiles, HaveTheIndicesOfTheStableOrder) {
  executor small({.threads = 2, .memory_bytes = std::size_t{1} << 14});
  for (const dims& shape : {dims{30000}, dims{3, 9000}, dims{9000, 2}, dims{300, 100}}) {
    SCOPED_TRACE(to_string(shape));
    const tensor values = any_elements<float>(choose_, shape).contiguous();
    const tensor larger = mapped(values);
    for (index_t axis = 0; axis < shape.size(); ++axis) {
      const index_t length = shape[axis];
      for (const index_t k : {index_t{1}, (length + 2) / 3, (length + 1) / 2, length}) {
        const ranked_elements got = run_on(small, [&] { return kthvalue(larger, k, axis); });
        const auto elements = elements_of<float>(got.values);
        const auto indices = elements_of<std::int64_t>(got.indices);
        std::size_t lane = 0;
        test::for_each_lane_of<float>(values, axis, [&](const auto& own, const auto&) {
          const index_t wanted = order_of(own, false)[static_cast<std::size_t>(k) - 1];
          ASSERT_EQ(indices[lane], wanted) << k;
          ASSERT_TRUE(test::same_bits(std::vector<float>{elements[lane]},
                                      std::vector<float>{own[static_cast<std::size_t>(wanted)]}));
          ++lane;
        });
      }
    }
  }
}

TEST_F(RanksOfFiles, AreFoundInTwoReads) {
  generator seeded(5);
  const tensor larger = mapped(eval(uniform(seeded, {100000}, 0, 1, dtype::float32)));
  executor small({.threads = 2, .memory_bytes = std::size_t{1} << 16});
  const double got = run_on(small, [&] { return median(larger); }).item().as<double>();
  EXPECT_NEAR(got, 0.5, 0.01);
  // And some bytes of the elements that were found.
  EXPECT_GE(small.statistics().bytes_read, 2 * larger.size_bytes());
  EXPECT_LE(small.statistics().bytes_read, 2 * larger.size_bytes() + 100);
}

}  // namespace
}  // namespace shale
