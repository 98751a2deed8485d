// Tests rolling reductions over random layouts, dtypes, axes and windows, in every way of the
// engine. The oracle goes through the elements of each window one by one.
#include "shale/rolling.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "ops/evaluation/rolling_tiles.hpp"
#include "ops/leaves/rolling_lanes.hpp"
#include "shale/convert.hpp"
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
#include "support/run_on.hpp"
#include "support/scratch_directory.hpp"
#include "support/small_stack.hpp"
#include "support/tensor_tiles.hpp"

namespace shale {
namespace {

using test::any_elements;
using test::code_of;
using test::elements_of;
using test::for_each_lane_of;
using test::random_choices;
using test::same_bits;
using test::tensor_tiles;

constexpr double none = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Compares all windows of all lanes: `of_window(first, end)` reduces the elements of one.
template <class T, class Result, class OfWindow>
void expect_windows(const tensor& found, const tensor& values, index_t axis, index_t window,
                    OfWindow of_window) {
  std::vector<std::vector<Result>> wanted;
  for_each_lane_of<T>(values, axis, [&](const auto& own, const auto&) {
    std::vector<Result> results;
    for (auto first = own.begin(); own.end() - first >= window; ++first)
      results.push_back(of_window(first, first + window));
    wanted.push_back(results);
  });
  dims shape = values.shape();
  shape[axis] -= window - 1;
  ASSERT_EQ(found.shape(), shape);
  ASSERT_EQ(found.dtype(), dtype_of<Result>());
  std::size_t lane = 0;
  for_each_lane_of<Result>(found, axis, [&](const auto& own, const auto&) {
    ASSERT_TRUE(same_bits(own, wanted[lane])) << "lane " << lane << ", window " << window;
    ++lane;
  });
}

/// A wide type in which sums of a few small whole numbers are exact.
template <class T>
auto wide(T element) {
  if constexpr (std::is_integral_v<T>) return static_cast<std::int64_t>(element);
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    return std::complex<double>(element.real(), element.imag());
  else if constexpr (std::is_same_v<T, std::complex<double>> || std::is_same_v<T, double>)
    return element;
  else return static_cast<double>(static_cast<float>(element));
}

template <class T, class Iterator>
auto exact_sum_of(Iterator first, Iterator end) {
  auto total = wide<T>(*first);
  while (++first != end) total += wide<T>(*first);
  return total;
}

/// The windows of small whole numbers.
template <class T>
void expect_sums_and_means(const expr& of, const tensor& values, index_t axis, index_t window) {
  constexpr bool counts = std::is_integral_v<T>;
  constexpr bool is_signed = std::is_signed_v<T> || std::is_same_v<T, bool>;
  using integer = std::conditional_t<is_signed, std::int64_t, std::uint64_t>;
  using sum_type = std::conditional_t<counts, integer, T>;
  using mean_type = std::conditional_t<counts, double, T>;
  expect_windows<T, sum_type>(
      eval(rolling_sum(of, window, axis)), values, axis, window,
      [](auto first, auto end) { return convert<sum_type>(exact_sum_of<T>(first, end)); });
  expect_windows<T, mean_type>(eval(rolling_mean(of, window, axis)), values, axis, window,
                               [&](auto first, auto end) {
                                 const auto total = exact_sum_of<T>(first, end);
                                 if constexpr (counts)
                                   return static_cast<double>(total) / static_cast<double>(window);
                                 else
                                   return convert<mean_type>(total / static_cast<double>(window));
                               });
}

template <class T>
void expect_extrema(const expr& of, const tensor& values, index_t axis, index_t window) {
  const auto found = [](auto first, auto end, bool largest) {
    T best = *first;
    while (++first != end) {
      const T next = *first;
      if (std::isnan(test::number_of(best))) break;
      const double a = test::number_of(best), b = test::number_of(next);
      const bool is_less = std::is_integral_v<T>
                               ? next < best
                               : b < a || (a == b && std::signbit(b) > std::signbit(a));
      const bool is_more = std::is_integral_v<T>
                               ? best < next
                               : a < b || (a == b && std::signbit(a) > std::signbit(b));
      if (std::isnan(b) || (largest ? is_more : is_less)) best = next;
    }
    return best;
  };
  // Payloads of NaN are not promised.
  const auto without_payloads = [](const expr& value) {
    return eval(is_inexact(value.dtype()) ? where(isnan(value), none, value) : value);
  };
  const auto canonical = [&](auto first, auto end, bool largest) {
    const T best = found(first, end, largest);
    if constexpr (std::is_integral_v<T>) return best;
    else return std::isnan(test::number_of(best)) ? convert<T>(none) : best;
  };
  expect_windows<T, T>(without_payloads(rolling_min(of, window, axis)), values, axis, window,
                       [&](auto first, auto end) { return canonical(first, end, false); });
  expect_windows<T, T>(without_payloads(rolling_max(of, window, axis)), values, axis, window,
                       [&](auto first, auto end) { return canonical(first, end, true); });
}

template <class T>
class Rolling : public testing::Test {};
using element_list = test::element_types<bool, std::int8_t, std::uint16_t, std::int64_t,
                                         std::uint64_t, float16, bfloat16, float, double>;
TYPED_TEST_SUITE(Rolling, element_list);

TYPED_TEST(Rolling, ReducesEveryWindowOfAnyLayoutAndAxis) {
  using T = TypeParam;
  executor one({.threads = 1}), four({.threads = 4});
  for (std::uint64_t seed = 0; seed < test::cases(60); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const index_t longest = choose(0, 3) == 0 ? 90 : 9;
    const dims shape =
        test::random_shape(choose, {.axes_max = 4, .longest = longest, .may_be_empty = false});
    if (shape.empty() || element_count(shape) > 20'000) continue;
    const index_t axis = choose(0, shape.size() - 1);
    const index_t window = choose(1, shape[axis]);
    const tensor values = test::random_tensor<T>(choose, shape);
    const tensor any = any_elements<T>(choose, shape);
    for (executor* on : {&one, &four}) {
      const executor::scope within(*on);
      expect_sums_and_means<T>(values, values, axis, window);
      expect_extrema<T>(values, values, axis, window);
      EXPECT_TRUE(equal_bits(eval(rolling_sum(values, window, axis - shape.size())),
                             eval(rolling_sum(values, window, axis))));
      expect_extrema<T>(any, any, axis, window);
      // A view of a computed operand.
      expect_extrema<T>(where(zeros(shape, dtype::boolean), values, any).flip().flip(), any, axis,
                        window);
    }
  }
}

template <class T>
class RollingComplex : public testing::Test {};
using complex_list = test::element_types<std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(RollingComplex, complex_list);

TYPED_TEST(RollingComplex, SumsBothParts) {
  using T = TypeParam;
  for (std::uint64_t seed = 0; seed < test::cases(30); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape{choose(1, 20), choose(1, 20)};
    const index_t axis = choose(0, 1);
    const tensor made = test::random_tensor<T>(choose, shape);
    const tensor values = eval(expr(made) * std::complex<double>(1, -2));
    expect_sums_and_means<T>(values, values, axis, choose(1, shape[axis]));
  }
}

/// The windows' sums and extrema of a lane, in time that does not grow with the window: sums from
/// the sum before, which is exact for integers, and extrema from a queue of candidates.
struct windows_of_lane {
  std::vector<std::int64_t> sums;
  std::vector<std::int32_t> lowest;

  windows_of_lane(const std::vector<std::int32_t>& own, index_t window) {
    std::int64_t sum = 0;
    std::deque<index_t> candidates;
    for (index_t k = 0; k < static_cast<index_t>(own.size()); ++k) {
      const auto value = [&](index_t at) { return own[static_cast<std::size_t>(at)]; };
      sum += value(k);
      while (!candidates.empty() && value(candidates.back()) >= value(k)) candidates.pop_back();
      candidates.push_back(k);
      if (candidates.front() <= k - window) candidates.pop_front();
      if (k + 1 < window) continue;
      sums.push_back(sum);
      lowest.push_back(value(candidates.front()));
      sum -= value(k - window + 1);
    }
  }
};

void expect_long_windows(const expr& of, const tensor& values, index_t axis, index_t window) {
  std::vector<windows_of_lane> wanted;
  for_each_lane_of<std::int32_t>(
      values, axis, [&](const auto& own, const auto&) { wanted.emplace_back(own, window); });
  std::size_t lane = 0;
  for_each_lane_of<std::int64_t>(eval(rolling_sum(of, window, axis)), axis,
                                 [&](const auto& own, const auto&) {
                                   ASSERT_TRUE(same_bits(own, wanted[lane++].sums)) << window;
                                 });
  lane = 0;
  for_each_lane_of<std::int32_t>(eval(rolling_min(of, window, axis)), axis,
                                 [&](const auto& own, const auto&) {
                                   ASSERT_TRUE(same_bits(own, wanted[lane++].lowest)) << window;
                                 });
}

class RollingOfMany : public testing::Test {
 protected:
  // The same elements and layout in a file of its own.
  tensor in_file(const tensor& from) {
    const std::string path = directory_ / std::to_string(files_++);
    storage bytes = create_file(path, from.storage().size_bytes());
    std::memcpy(bytes.data(), from.storage().data(), bytes.size_bytes());
    return tensor(bytes, from.dtype(), from.layout());
  }

  static tensor whole_numbers(std::uint64_t seed, const dims& shape) {
    random_choices choose(seed);
    return test::random_tensor<std::int32_t>(choose, {layout(shape), element_count(shape)});
  }

  executor one_{{.threads = 1}};
  executor four_{{.threads = 4}};
  executor tiny_{{.threads = 3, .memory_bytes = 1 << 18}};

 private:
  test::scratch_directory directory_;
  int files_ = 0;
};

// Windows that are shorter than a tile, as long, and longer.
TEST_F(RollingOfMany, TilesReducesWindowsOfAnyLength) {
  const tensor line = whole_numbers(1, {300'000});
  const tensor square = whole_numbers(2, {300, 2000});
  for (executor* on : {&one_, &four_}) {
    const executor::scope within(*on);
    for (const index_t window : {1, 2, 1000, 131'072, 299'999, 300'000})
      expect_long_windows(line, line, 0, window);
    for (const index_t window : {3, 300}) expect_long_windows(square, square, 0, window);
    for (const index_t window : {3, 1999}) {
      expect_long_windows(square, square, 1, window);
      expect_long_windows(square.swapaxes(0, 1), square.swapaxes(0, 1), 0, window);
    }
  }
}

TEST_F(RollingOfMany, FilesAndTilesAreReadInPartsThatOverlap) {
  const tensor line = whole_numbers(3, {400'000});
  const tensor square = whole_numbers(4, {900, 500});
  const executor::scope within(tiny_);
  expect_long_windows(in_file(line), line, 0, 5000);
  const tensor mapped = in_file(square);
  for (const index_t axis : {0, 1}) {
    expect_long_windows(mapped, square, axis, 60);
    expect_long_windows(mapped.swapaxes(0, 1), square.swapaxes(0, 1), axis, 60);
    for (const dims& tile : {dims{1, 500}, dims{64, 70}, dims{1000, 3}}) {
      const expr read(std::make_shared<const tensor_tiles>(square, tile));
      expect_long_windows(read, square, axis, 60);
      const tensor wanted = eval(rolling_sum(square, 60, axis));
      const tensor out = tensor::zeros(wanted.shape(), dtype::int64);
      tensor_tiles sink(out, {300, 190});
      eval_into(sink, rolling_sum(read, 60, axis));
      EXPECT_TRUE(equal_bits(out, wanted));
      // A part that begins inside of a tile, backwards.
      const auto part = [](const expr& whole) {
        return whole.narrow(0, 11, 800).narrow(1, 3, 401).flip({0});
      };
      EXPECT_TRUE(equal_bits(eval(rolling_max(part(read), 60, axis)),
                             eval(rolling_max(part(square), 60, axis))));
    }
  }
}

/// Numbers whose sums over multiples of four neighbours, along any axis, are tiny beside them. So
/// their last bits depend on the order of additions, although these are more precise than results.
tensor cancelling(const dims& shape) {
  expr place = zeros(shape, dtype::int64);
  for (index_t axis = 0; axis < shape.size(); ++axis) {
    dims along = dims::filled(shape.size(), 1);
    along[axis] = shape[axis];
    place = place + arange(shape[axis]).reshape(along);
  }
  const expr small =
      sin(astype(arange(element_count(shape)), dtype::float64)).reshape(shape) * 1e-3;
  const expr phase = place % 4;
  return eval(astype(where(phase == 0, 1e9, where(phase == 2, -1e9, small)), dtype::float32));
}

// rolling.2
TEST_F(RollingOfMany, FloatsHasTheSameBitsForAnyThreadsBudgetAndLayout) {
  const tensor values = cancelling({700, 600});
  const tensor turned = eval(expr(values).swapaxes(0, 1));
  const tensor mapped = in_file(values);
  const expr tiles(std::make_shared<const tensor_tiles>(values, dims{130, 47}));
  for (const index_t axis : {0, 1})
    for (const index_t window : {4, 44, 592}) {
      const auto sums = [&](const expr& of, executor& on) {
        return test::run_on(on, [&] { return eval(rolling_sum(of, window, axis)); });
      };
      const tensor wanted = sums(values, one_);
      for (executor* on : {&four_, &tiny_}) {
        EXPECT_TRUE(equal_bits(sums(values, *on), wanted));
        EXPECT_TRUE(equal_bits(sums(expr(turned).swapaxes(0, 1), *on), wanted));
        EXPECT_TRUE(equal_bits(sums(mapped, *on), wanted));
        EXPECT_TRUE(equal_bits(sums(tiles, *on), wanted));
        EXPECT_TRUE(equal_bits(sums(expr(values) * 1, *on), wanted));
      }
    }
}

// rolling.2
TEST(RollingLanes, HaveTheSameBitsInAnyPartOfAnAxis) {
  const tensor values = cancelling({3, 200, 5});
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    random_choices choose(seed);
    const index_t window = 4 * choose(1, 50), count = 201 - window;
    const tensor whole = tensor::empty({3, count, 5}, dtype::float32);
    ops::reduce_windows(ops::reduction::sum, values, whole, {1, window, 0});
    const index_t first = choose(0, count - 1), part = choose(1, count - first);
    const tensor some = tensor::empty({3, part, 5}, dtype::float32);
    ops::reduce_windows(ops::reduction::sum, values.narrow(1, first, part + window - 1).clone(),
                        some, {1, window, first});
    EXPECT_TRUE(equal_bits(some, whole.narrow(1, first, part))) << seed;
  }
}

// rolling.1
TEST(RollingFloats, ForgetWhatTheirWindowsHaveLeft) {
  for (const dtype type : {dtype::float32, dtype::float64}) {
    const tensor values = eval(full({1000}, 0.25, type));
    for (const auto& [at, odd] : {std::pair{100, none},
                                  {300, infinity},
                                  {305, -infinity},
                                  {500, 1e30},
                                  {700, -1e30},
                                  {999, none}})
      values.set({at}, odd);
    for (const index_t window : {1, 2, 7, 64}) {
      const auto sums = elements_of<double>(
          eval(astype(expr(eval(rolling_sum(values, window))), dtype::float64)));
      const auto means = elements_of<double>(
          eval(astype(expr(eval(rolling_mean(values, window))), dtype::float64)));
      const auto highest = elements_of<double>(
          eval(astype(expr(eval(rolling_max(values, window))), dtype::float64)));
      const auto elements = elements_of<double>(eval(astype(expr(values), dtype::float64)));
      for (std::size_t p = 0; p < sums.size(); ++p) {
        const auto end = p + static_cast<std::size_t>(window);
        const bool is_plain = std::all_of(elements.begin() + static_cast<std::ptrdiff_t>(p),
                                          elements.begin() + static_cast<std::ptrdiff_t>(end),
                                          [](double x) { return x == 0.25; });
        if (!is_plain) continue;
        EXPECT_EQ(sums[p], 0.25 * static_cast<double>(window)) << p;
        EXPECT_EQ(means[p], 0.25) << p;
        EXPECT_EQ(highest[p], 0.25) << p;
      }
      if (window == 7) {
        EXPECT_TRUE(std::isnan(sums[94]));
        EXPECT_EQ(sums[294], infinity);
        EXPECT_TRUE(std::isnan(sums[300]));
        EXPECT_EQ(sums[305], -infinity);
      }
    }
  }
}

TEST(RollingFloats, AreAsAccurateAsSums) {
  const tensor large = tensor::of<double>({1e16, 1, -1e16, 1e16, 1, -1e16, 1e16});
  EXPECT_EQ(elements_of<double>(eval(rolling_sum(large, 3))), std::vector<double>(5, 1.0));
  EXPECT_EQ(elements_of<double>(eval(rolling_mean(large, 6))), std::vector<double>(2, 2.0 / 6));
  // A running sum of float32 would have lost its digits.
  const expr many = where(arange(100'000) < 10, 1e9, 0.001);
  const auto found = elements_of<float>(eval(rolling_sum(astype(many, dtype::float32), 100)));
  EXPECT_FLOAT_EQ(found.back(), 0.1F);
  EXPECT_FLOAT_EQ(found[10], 0.1F);
  const tensor wide = tensor::of<std::int64_t>({(1LL << 62) + 1, 1LL << 62, (1LL << 62) + 2});
  EXPECT_EQ(eval(rolling_mean(wide, 3)).at({0}).to<double>(), 0x1p62);
  EXPECT_EQ(eval(rolling_sum(wide, 2)).at({0}).to<std::int64_t>(),
            std::numeric_limits<std::int64_t>::min() + 1);
}

// One pass writes the output; nothing is held as a whole.
TEST_F(RollingOfMany, WritesItsOutputItself) {
  const tensor values = whole_numbers(6, {1000, 1000});
  const auto alone = explain(rolling_sum(expr(values) + 1, 5, 0));
  EXPECT_EQ(alone.passes, 1);
  EXPECT_EQ(alone.staged_bytes_max, 0u);
  EXPECT_EQ(alone.bytes_written, 996u * 1000 * 8);
  EXPECT_EQ(explain(rolling_sum(values, 5, 0) * 2).staged_bytes_max, 996u * 1000 * 8);
}

TEST_F(RollingOfMany, MayReplaceItsOperand) {
  // One thread stores each tile of results before it computes the next one.
  for (executor* on : {&one_, &four_})
    for (const auto& [axis, window] :
         {std::pair<index_t, index_t>{0, 1}, {0, 2}, {0, 40}, {1, 1}, {1, 2}, {1, 40}}) {
      const executor::scope within(*on);
      const tensor values = eval(astype(expr(whole_numbers(7, {500, 400})), dtype::int64));
      const tensor wanted = eval(rolling_sum(values, window, axis));
      const tensor part = values.narrow(axis, window / 2, wanted.shape(axis));
      eval_into(part, rolling_sum(values, window, axis));
      EXPECT_TRUE(equal_bits(part, wanted)) << axis << ' ' << window;
      // Windows of one element, so that results replace the tiles that they are computed from.
      const tensor tiled = eval(astype(expr(whole_numbers(8, {300, 40})), dtype::int64));
      const auto tiles = std::make_shared<tensor_tiles>(tiled, dims{7, 40});
      const expr backwards = expr(std::shared_ptr<const tile_source>(tiles)).flip({0});
      const tensor same = eval(rolling_min(backwards, 1, axis));
      eval_into(*tiles, rolling_min(backwards, 1, axis));
      EXPECT_TRUE(equal_bits(tiled, same));
    }
}

// What parts depend on as a whole is computed once, and tiles are loaded at most twice, except for
// those at the ends of parts.
TEST_F(RollingOfMany, TilesLoadsEachTileTwiceAtMost) {
  const index_t tiles = 4000;
  const auto source = std::make_shared<test::counted_tiles>(tiles * 100);
  const expr x{std::shared_ptr<const tile_source>(source)};
  const executor::scope within(four_);
  const tensor held = eval(x);
  const tensor wanted = eval(rolling_sum(held, 70'000));
  source->loads = 0;
  EXPECT_TRUE(equal_bits(eval(rolling_sum(x, 70'000)), wanted));
  EXPECT_LE(source->loads, 2 * tiles + 10);
  source->loads = 0;
  EXPECT_TRUE(equal_bits(eval(rolling_max(x - max(x), 70'000)),
                         eval(rolling_max(expr(held) - max(held), 70'000))));
  EXPECT_LE(source->loads, 3 * tiles + 10);
}

// The numbers of elements do not overflow, which the sanitizers would see.
TEST(RollingTiles, LieInsideTheLongestAxes) {
  const index_t longest = std::numeric_limits<index_t>::max();
  const ops::node_ref operand = ops::make_constant(1, {longest}, dtype::int8, false);
  for (const index_t window : {index_t{1}, index_t{1} << 40, index_t{1} << 62, longest}) {
    const index_t windows = longest - window + 1;
    const ops::rolling_tiles tiles(
        {.input = operand, .axes = {0}, .width = window, .shape = {windows}, .type = dtype::int64},
        operand);
    EXPECT_GE(tiles.tile_shape()[0], std::min(window, windows)) << window;
    EXPECT_LE(tiles.tile_shape()[0], windows) << window;
  }
}

TEST_F(RollingOfMany, TilesEndsWithTheFirstError) {
  const tensor values = whole_numbers(9, {400, 50});
  for (const index_t bad : {0, 3, 39}) {
    const expr read(std::make_shared<const tensor_tiles>(values, dims{10, 50}, dims{bad, 0}));
    tensor_tiles sink(tensor::zeros({391, 50}, dtype::int64), {10, 50}, dims{bad, 0});
    for (executor* on : {&one_, &four_}) {
      const executor::scope within(*on);
      EXPECT_EQ(code_of([&] { eval(rolling_sum(read, 10, 0)); }), errc::corrupt);
      EXPECT_EQ(code_of([&] { eval_into(sink, rolling_sum(values, 10, 0)); }), errc::out_of_space);
    }
  }
}

// A part of such a graph would be computed as a whole each time.
TEST_F(RollingOfMany, LargeGraphsAreComputedOnce) {
  const auto source = std::make_shared<test::counted_tiles>(300'000);
  const expr plain{std::shared_ptr<const tile_source>(source)};
  expr x = plain;
  for (int k = 0; k < 1100; ++k) x = x + 1;
  const executor::scope within(four_);
  const tensor found = eval(rolling_min(x, 3));
  EXPECT_LE(source->loads, 3000);
  EXPECT_TRUE(equal_bits(found, eval(rolling_min(plain, 3) + 1100)));
}

TEST(RollingOperands, MayBeStagesAndRollingThemselves) {
  const expr x = astype(arange(60), dtype::float64);
  const auto numbers = [](const expr& value) { return elements_of<double>(eval(value)); };
  EXPECT_EQ(numbers(rolling_max(cumulative_sum(x), 3)),
            numbers(cumulative_sum(x).narrow(0, 2, 58)));
  EXPECT_EQ(numbers(rolling_max(rolling_min(x, 5), 5)), numbers(x.narrow(0, 4, 52)));
  EXPECT_EQ(numbers(rolling_mean(concat(std::vector<expr>{x, x}, 0), 60).narrow(0, 0, 1)),
            numbers(mean(x, {0}, keepdims::yes)));
  EXPECT_EQ(numbers(sum(rolling_sum(x, 60))), numbers(sum(x)));
  EXPECT_EQ(numbers(rolling_sum(x, 2).flip({0}).sliced(0, {.step = 58})),
            (std::vector<double>{117, 1}));
}

// A load transposes its operand on the stack of the pass that needs the tile. Less than is stated
// must do, because other operands nest deeper.
TEST(RollingOperands, AreReadAcrossTheirOrderOnASmallStack) {
  const tensor values =
      eval(astype(arange(600 * 700) * 7919 % 10007, dtype::float64)).view({600, 700});
  const expr across = expr(std::shared_ptr<const tile_source>(
                               std::make_shared<tensor_tiles>(values, dims{300, 350})))
                          .swapaxes(0, 1);
  executor alone({.threads = 1});
  tensor found;
  test::run_on_a_stack_of(test::stated_stack_bytes / 4 * 3, [&] {
    const executor::scope within(alone);
    found = eval(rolling_max(across, 7, 0));
  });
  expect_windows<double, double>(found, values.swapaxes(0, 1), 0, 7, [](auto first, auto end) {
    return *std::max_element(first, end);
  });
}

TEST(RollingErrors, AreInvalidArguments) {
  const tensor values = tensor::zeros({3, 4}, dtype::float32);
  const auto refuses = [](auto call) { EXPECT_EQ(code_of(call), errc::invalid_argument); };
  refuses([&] { rolling_sum(values, 5); });
  refuses([&] { rolling_sum(values, 4, 0); });
  refuses([&] { rolling_sum(values, 0); });
  refuses([&] { rolling_mean(values, -1); });
  refuses([&] { rolling_min(values, 1, 2); });
  refuses([&] { rolling_max(tensor::zeros({3}, dtype::complex64), 2); });
  refuses([&] { rolling_sum(tensor::zeros({3}, dtype::float8_e5m2), 2); });
  refuses([&] { rolling_sum(tensor::full({}, 1, dtype::int32), 1); });
  refuses([&] { rolling_sum(tensor::zeros({0}, dtype::int32), 1); });
  EXPECT_EQ(eval(rolling_sum(tensor::zeros({0, 4}, dtype::int8), 3)).shape(), (dims{0, 2}));
}

}  // namespace
}  // namespace shale
