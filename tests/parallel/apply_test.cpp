#include "shale/apply.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "parallel/executor/tile_loop.hpp"
#include "shale/for_each.hpp"
#include "shale/memory_pool.hpp"
#include "shale/reduce.hpp"
#include "support/failures.hpp"
#include "support/random_tensors.hpp"
#include "support/run_on.hpp"

namespace shale {
namespace {

using test::code_of;
using test::elements_of;
using test::random_choices;
using test::random_tensor;
using test::sharing;

// Small shapes with many axes, and sometimes one with several tiles.
dims some_shape(random_choices& choose) {
  return choose(0, 7) == 0 ? test::random_shape(choose, {.axes_max = 3, .longest = 60})
                           : test::random_shape(choose);
}

// loop.2: ThreadSanitizer would report a race, because elements are plain memory.
TEST(Apply, MatchesAnIndexByIndexLoopOverRandomLayouts) {
  executor one({.threads = 1});
  executor three({.threads = 3});
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape = some_shape(choose);
    const tensor y = random_tensor<float>(choose, shape, sharing::distinct);
    const tensor a = random_tensor<float>(choose, test::random_broadcastable(choose, shape));
    const tensor b = random_tensor<std::int16_t>(choose, test::random_broadcastable(choose, shape));
    const auto old = elements_of<float>(y);
    const auto left = elements_of<float>(a);
    const auto right = elements_of<std::int16_t>(b);
    const auto left_at = test::broadcast_positions(a.shape(), shape);
    const auto right_at = test::broadcast_positions(b.shape(), shape);

    auto expected = test::bytes_of(y.storage());
    const auto at = test::positions_of(y);
    for (std::size_t i = 0; i < at.size(); ++i) {
      const float value = old[i] + 2 * left[static_cast<std::size_t>(left_at[i])] -
                          static_cast<float>(right[static_cast<std::size_t>(right_at[i])]);
      std::memcpy(expected.data() + at[i] * 4, &value, 4);
    }
    const executor::scope within(seed % 2 ? one : three);
    apply([](float& to, float x, const std::int16_t& z) { to += 2 * x - static_cast<float>(z); }, y,
          a, b);
    // Bytes between the elements do not change.
    ASSERT_EQ(test::bytes_of(y.storage()), expected);
  }
}

TEST(Apply, TakesOneToEightOperands) {
  const auto make = [](int value) {
    tensor made = tensor::zeros({5, 7}, dtype::int32);
    apply([value](std::int32_t& x) { x = value; }, made);
    return made;
  };
  const tensor out = make(0);
  const tensor a = make(1), b = make(20), c = make(300), d = make(4000), e = make(50000),
               f = make(600000), g = make(7000000);
  apply_into(
      out,
      [](int p, int q, int r, int s, int t, int u, int v) { return p + q + r + s + t + u + v; }, a,
      b, c, d, e, f, g.broadcast_to({5, 7}));
  for (const auto element : elements_of<std::int32_t>(out)) ASSERT_EQ(element, 7654321);
  apply([](int& p, int& q) { std::swap(p, q); }, a, b);
  EXPECT_EQ(elements_of<std::int32_t>(a).front(), 20);
  EXPECT_EQ(elements_of<std::int32_t>(b).back(), 1);
}

TEST(Apply, CallsTheLambdaOnceForEachElement) {
  for (const dims& shape : {dims{}, dims{1}, dims{100, 100, 10}, dims{0}, dims{4, 0}}) {
    const tensor counts = tensor::zeros(shape, dtype::uint8);
    std::atomic<index_t> calls = 0;
    apply(
        [&](std::uint8_t& count) {
          ++count;
          calls.fetch_add(1, std::memory_order_relaxed);
        },
        counts);
    EXPECT_EQ(calls, counts.size());
    for (const auto count : elements_of<std::uint8_t>(counts)) ASSERT_EQ(count, 1);
  }
}

TEST(Apply, SpeaksEveryDtype) {
  const auto round_trip = []<class T>(std::type_identity<T>) {
    random_choices choose(7);
    const tensor from = random_tensor<T>(choose, {6, 5}).swapaxes(0, 1);
    const tensor to = tensor::empty(from.shape(), dtype_of<T>());
    apply_into(
        to, [](const T& x) { return x; }, from);
    using Bits = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
    const auto expected = elements_of<Bits>(from);
    const auto got = elements_of<Bits>(to);
    EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(T)), 0)
        << name(dtype_of<T>());
  };
  const auto each = [&]<class... T>(type_list<T...>) {
    (round_trip(std::type_identity<T>{}), ...);
  };
  each(all_types{});
  const tensor flags = tensor::zeros({3}, dtype::boolean);
  apply([](bool& x) { x = !x; }, flags);
  EXPECT_EQ(flags.at({2}), scalar(true));
}

// ---- the overlap rule --------------------------------------------------------------------------

TEST(Overlap, InputsAreReadAsTheyWereBefore) {
  executor two({.threads = 2});
  const executor::scope within(two);
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const index_t n = choose(0, 9) == 0 ? 150 : choose(1, 9);
    const tensor whole = random_tensor<std::int32_t>(choose, {n + 3, n + 2}, sharing::distinct);
    const index_t rows = choose(1, n), columns = choose(1, n);
    const auto window = [&] {
      tensor part = whole.narrow(0, choose(0, n + 3 - rows), rows)
                        .narrow(1, choose(0, n + 2 - columns), columns);
      if (choose(0, 2) == 0) part = part.flip({choose(0, 1)});
      if (rows == columns && choose(0, 1) == 0) part = part.swapaxes(0, 1);
      return part;
    };
    const tensor out = window();
    const tensor a = window();
    const tensor b = choose(0, 2) == 0 ? a.narrow(0, 0, 1) : window();
    auto left = elements_of<std::int32_t>(a);
    const auto right = elements_of<std::int32_t>(b);
    const auto right_at = test::broadcast_positions(b.shape(), out.shape());
    for (std::size_t i = 0; i < left.size(); ++i)
      left[i] = 3 * left[i] + right[static_cast<std::size_t>(right_at[i])];
    apply_into(
        out, [](int x, int y) { return 3 * x + y; }, a, b);
    ASSERT_EQ(elements_of<std::int32_t>(out), left);
  }
}

TEST(Overlap, IsSeenBetweenTwoOwnersOfTheSameBytes) {
  std::vector<int> bytes(10);
  std::iota(bytes.begin(), bytes.end(), 0);
  const tensor to = tensor::borrow(bytes.data() + 1, {9});
  const tensor from = tensor::borrow(bytes.data(), {9});
  apply_into(
      to, [](int x) { return x + 100; }, from);
  EXPECT_EQ(bytes, (std::vector<int>{0, 100, 101, 102, 103, 104, 105, 106, 107, 108}));
}

TEST(Overlap, CopyThatDoesNotFitNamesItsBytes) {
  executor small({.threads = 1, .memory_bytes = 1000});
  const executor::scope within(small);
  const tensor a = tensor::zeros({100, 100}, dtype::float32);
  try {
    apply_into(
        a, [](float x) { return x; }, a.swapaxes(0, 1));
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::out_of_memory);
    EXPECT_NE(std::string(failure.what()).find("40000"), std::string::npos) << failure.what();
  }
}

TEST(Overlap, CopiesThatDoNotFitTogetherAreRefused) {
  executor small({.threads = 1, .memory_bytes = 100'000});
  const executor::scope within(small);
  const tensor a = tensor::zeros({100, 100}, dtype::float32);
  apply([](float& x) { x = 1; }, a);
  apply_into(
      a, [](float x, float y) { return x + y; }, a.swapaxes(0, 1), a.flip({0}));
  EXPECT_GE(small.statistics().scratch_bytes_peak, 80'000U);
  EXPECT_EQ(code_of([&] {
              apply_into(
                  a, [](float x, float y, float z) { return x + y + z; }, a.swapaxes(0, 1),
                  a.flip({0}), a.flip({1}));
            }),
            errc::out_of_memory);
  for (const auto element : elements_of<float>(a)) ASSERT_EQ(element, 2);
}

TEST(Apply, AllocatesNoElementBytesWithoutOverlap) {
  auto& pool = memory_pool::default_pool();
  executor two({.threads = 2});
  const executor::scope within(two);
  const tensor out = tensor::zeros({700, 500}, dtype::float64).swapaxes(0, 1).flip({0});
  const tensor a = tensor::zeros({500, 1400}, dtype::float64).sliced(1, {.step = -2});
  const tensor b = tensor::zeros({700}, dtype::float64);
  const auto run = [&] {
    apply([](double& x, double y, double z) { x += y * z; }, out, a, b);
    return reduce(
        a, 0.0, [](double& sum, double x) { sum += x; }, [](double& x, double y) { x += y; });
  };
  run();
  pool.reset_peak();
  const auto before = pool.statistics();
  run();
  const auto after = pool.statistics();
  EXPECT_EQ(after.live_bytes, before.live_bytes);
  EXPECT_EQ(after.peak_live_bytes, before.live_bytes);
  EXPECT_EQ(after.mapped_bytes, before.mapped_bytes);
  EXPECT_EQ(after.hits + after.misses, before.hits + before.misses);
}

TEST(Overlap, OfTwoOutputsIsRefusedAlsoWhereTheyAreTheSame) {
  const tensor a = tensor::zeros({5, 4}, dtype::float32);
  const auto both = [](const tensor& x, const tensor& y) {
    return code_of([&] { apply([](float& to, float& other) { to = other = 1; }, x, y); });
  };
  EXPECT_EQ(both(a, a), errc::invalid_argument);
  EXPECT_EQ(both(a, a.flip({0})), errc::invalid_argument);
  EXPECT_EQ(both(a.narrow(0, 0, 2), a.narrow(0, 2, 2)), errc{});
  EXPECT_EQ(both(a.narrow(0, 2, 0), a.narrow(0, 2, 0)), errc{});
  apply([](float& to, float from) { to += from; }, a, a);  // an input may be the output
}

TEST(Apply, InPlaceOverAxesOfLengthOneIsNoOverlap) {
  auto& pool = memory_pool::default_pool();
  const tensor base = tensor::zeros({64, 9}, dtype::float32);
  const tensor out = base.as_strided({1, 64}, {64, 9}, 0);
  const tensor in = base.as_strided({1, 64}, {1, 9}, 0);
  pool.reset_peak();
  const auto before = pool.statistics();
  apply_into(
      out, [](float x) { return x + 1; }, in);
  EXPECT_EQ(pool.statistics().peak_live_bytes, before.live_bytes);
  EXPECT_EQ(base.at({63, 0}), scalar(1.0));
}

// ---- refusals ----------------------------------------------------------------------------------

TEST(Apply, RefusesOutputsThatNameAnElementTwice) {
  const tensor x = tensor::zeros({12}, dtype::float32);
  const auto write = [](const tensor& to) { apply([](float& e) { e = 1; }, to); };
  EXPECT_EQ(code_of([&] { write(x.narrow(0, 0, 1).broadcast_to({4})); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { write(x.as_strided({3, 3}, {2, 1}, 0)); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { write(x.unfold(0, 3, 2)); }), errc::invalid_argument);
  write(x.unfold(0, 3, 3));
  EXPECT_EQ(x.at({11}), scalar(1.0));
}

TEST(Apply, RefusesWhatDoesNotFit) {
  const tensor x = tensor::zeros({3, 4}, dtype::float32);
  const tensor row = tensor::zeros({4}, dtype::float32);
  const auto add = [](float& to, float from) { to += from; };
  EXPECT_EQ(code_of([&] { apply(add, row, x); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { apply(add, x, tensor::zeros({3}, dtype::float32)); }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] { apply(add, x, tensor::zeros({4}, dtype::float64)); }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] { apply(add, x.as_read_only(), row); }), errc::access_denied);
  EXPECT_EQ(code_of([&] {
              apply([](float& p, float& q) { p = q; }, x.narrow(0, 0, 2), x.narrow(0, 1, 2));
            }),
            errc::invalid_argument);
  for (const auto element : elements_of<float>(x)) ASSERT_EQ(element, 0);
}

TEST(Apply, CountsAWriteOnOutputsOnly) {
  tensor x = tensor::zeros({4}, dtype::float32), y = tensor::zeros({4}, dtype::float32);
  const auto x_version = x.storage().version(), y_version = y.storage().version();
  apply([](float& to, float from) { to += from; }, x, y);
  EXPECT_NE(x.storage().version(), x_version);
  EXPECT_EQ(y.storage().version(), y_version);
}

TEST(Apply, CountsAWriteThatAnExceptionEnds) {
  const auto fail = [](float& to) {
    to = 1;
    throw std::runtime_error("stop");
  };
  const auto counts = [](auto call) {
    const tensor x = tensor::zeros({4, 3}, dtype::float32);
    const auto before = x.storage().version();
    EXPECT_THROW(call(x), std::runtime_error);
    EXPECT_NE(x.storage().version(), before);
  };
  counts([&](const tensor& x) { apply(fail, x); });
  counts([&](const tensor& x) { apply_in_order(fail, x); });
  counts([](const tensor& x) {
    for_each_lane<float>(
        1, [](lane<float>) { throw std::runtime_error("stop"); }, x);
  });
}

// ---- segments, lanes, folds --------------------------------------------------------------------

TEST(Segments, CoverEveryElementOnceInEqualRuns) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const dims shape = some_shape(choose);
    const tensor to = random_tensor<std::int64_t>(choose, shape, sharing::distinct);
    const tensor from = random_tensor<float>(choose, test::random_broadcastable(choose, shape));
    auto expected = elements_of<std::int64_t>(to);
    const auto in = elements_of<float>(from);
    const auto at = test::broadcast_positions(from.shape(), shape);
    for (std::size_t i = 0; i < expected.size(); ++i)
      expected[i] += static_cast<std::int64_t>(in[static_cast<std::size_t>(at[i])]);
    for_each_segment<std::int64_t, const float>(
        [](std::span<std::int64_t> out, std::span<const float> values) {
          ASSERT_EQ(out.size(), values.size());
          for (std::size_t i = 0; i < out.size(); ++i)
            out[i] += static_cast<std::int64_t>(values[i]);
        },
        to, from);
    ASSERT_EQ(elements_of<std::int64_t>(to), expected);
  }
}

TEST(Segments, OfContiguousOperandsAreLong) {
  const tensor x = tensor::zeros({300, 400}, dtype::float32);
  std::atomic<int> runs = 0;
  for_each_segment<float>([&](std::span<float>) { ++runs; }, x);
  EXPECT_LE(runs, 32);
}

TEST(Lanes, RunAlongTheirAxis) {
  executor three({.threads = 3});
  const executor::scope within(three);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    dims shape = some_shape(choose);
    if (shape.empty()) shape = {4};
    const index_t axis = choose(-shape.size(), shape.size() - 1);
    const index_t along = axis < 0 ? axis + shape.size() : axis;
    const tensor to = random_tensor<std::int64_t>(choose, shape, sharing::distinct);
    const tensor from =
        random_tensor<std::int32_t>(choose, test::random_broadcastable(choose, shape));
    // Running sums along the axis.
    const auto in = elements_of<std::int32_t>(from);
    const auto at = test::broadcast_positions(from.shape(), shape);
    std::vector<std::int64_t> expected(at.size());
    std::size_t step = 1;
    for (index_t inner = along + 1; inner < shape.size(); ++inner)
      step *= static_cast<std::size_t>(shape[inner]);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const bool first = i / step % static_cast<std::size_t>(shape[along]) == 0;
      expected[i] = in[static_cast<std::size_t>(at[i])] + (first ? 0 : expected[i - step]);
    }
    std::atomic<index_t> lanes = 0;
    for_each_lane<std::int64_t, const std::int32_t>(
        axis,
        [&](lane<std::int64_t> out, lane<const std::int32_t> values) {
          ++lanes;
          std::int64_t sum = 0;
          for (index_t i = 0; i < out.size; ++i) out[i] = sum += values[i];
        },
        to, from);
    ASSERT_EQ(elements_of<std::int64_t>(to), expected);
    dims starts = shape;
    starts[along] = 1;
    ASSERT_EQ(lanes, element_count(starts));
  }
}

// An empty output does not broadcast either.
TEST(Lanes, OfAnEmptyOutputAreAsManyAsItHas) {
  const tensor in = tensor::zeros({5, 3}, dtype::float32);
  std::atomic<int> calls = 0;
  const auto count = [&](lane<float> out, lane<const float> from) {
    EXPECT_EQ(out.size, 0);
    EXPECT_EQ(from.size, 3);
    ++calls;
  };
  for (const dims& shape : {dims{1, 0}, dims{4, 0}, dims{0}})
    EXPECT_EQ(code_of([&] {
                for_each_lane<float, const float>(1, count, tensor::zeros(shape, dtype::float32),
                                                  in);
              }),
              errc::invalid_argument)
        << to_string(shape);
  EXPECT_EQ(calls, 0);
  for_each_lane<float, const float>(1, count, tensor::zeros({5, 0}, dtype::float32), in);
  EXPECT_EQ(calls, 5);
}

TEST(Reduce, MatchesAnIndexByIndexLoop) {
  executor two({.threads = 2});
  const executor::scope within(two);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const tensor x = random_tensor<std::int32_t>(choose, some_shape(choose));
    std::int64_t sum = 0;
    for (const auto element : elements_of<std::int32_t>(x)) sum += element * element;
    const auto got = reduce(
        x, std::int64_t{0}, [](std::int64_t& to, std::int32_t e) { to += e * e; },
        [](std::int64_t& to, std::int64_t other) { to += other; });
    ASSERT_EQ(got, sum);
  }
}

// plan.2
TEST(Reduce, HasTheSameBitsForAnyNumberOfThreads) {
  random_choices choose(5);
  for (const bool turned : {false, true}) {
    tensor x = random_tensor<float>(choose, {333, 777}, sharing::distinct);
    apply([](float& e) { e = 1 / (e + 0.1f); }, x);
    if (turned) x = x.swapaxes(0, 1).narrow(0, 3, 700);
    const auto sum = [&](int threads, std::size_t memory_bytes = 0) {
      executor on({.threads = threads, .memory_bytes = memory_bytes});
      const executor::scope within(on);
      return reduce(
          x, 0.0f, [](float& to, float e) { to += e; },
          [](float& to, float other) { to += other; });
    };
    const float expected = sum(1);
    for (int repetition = 0; repetition < 5; ++repetition)
      for (const int threads : {2, 3, 4}) ASSERT_EQ(sum(threads), expected);
    for (const std::size_t budget : {1 << 16, 1 << 20, 1 << 24})
      ASSERT_EQ(sum(2, budget), expected);
  }
}

}  // namespace
}  // namespace shale
