// Tests fill, copy, tensor::full, array_equal and allclose, element by element.
#include "shale/ops.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "shale/creation.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"
#include "shale/evaluate.hpp"
#include "shale/executor.hpp"
#include "shale/reductions.hpp"
#include "shale/rolling.hpp"
#include "shale/tall_qr.hpp"
#include "support/failures.hpp"
#include "support/random_tensors.hpp"
#include "support/small_stack.hpp"

namespace shale::test {
namespace {

// The bytes in the gaps between the elements of a random layout must not change.
TEST(Fill, StoresIntoEveryElementAndNothingElse) {
  random_choices choose(1);
  for (int round = 0; round < 100; ++round) {
    const dims shape = random_shape(choose);
    const tensor out = random_tensor<float>(choose, shape, sharing::distinct);
    auto expected = bytes_of(out.storage());
    const float value = -3.5f;
    for (const index_t position : positions_of(out))
      std::memcpy(expected.data() + position * static_cast<index_t>(sizeof value), &value,
                  sizeof value);
    fill(out, value);
    EXPECT_EQ(bytes_of(out.storage()), expected) << to_string(shape);
  }
}

TEST(Copy, NeedsNoMoreStackThanIsStated) {
  executor alone({.threads = 1});
  std::vector<tensor> from, to;
  for (const dtype type :
       {dtype::uint8, dtype::int16, dtype::float32, dtype::float64, dtype::complex128}) {
    from.push_back(eval(astype(remainder(arange(600 * 700), 200).reshape({600, 700}), type)));
    to.push_back(tensor::zeros({700, 600}, type));
  }
  scalar total;
  run_on_a_stack_of(stated_stack_bytes, [&] {
    const executor::scope within(alone);
    for (std::size_t k = 0; k < from.size(); ++k) copy(to[k], from[k].swapaxes(0, 1));
    total = eval(sum(expr(from[2]) * 2 + to[2].swapaxes(0, 1))).item();
  });
  for (std::size_t k = 0; k < from.size(); ++k)
    EXPECT_TRUE(array_equal(to[k].swapaxes(0, 1), from[k])) << name(from[k].dtype());
  EXPECT_EQ(total, eval(sum(expr(from[2]) * 3)).item());
}

// nested.1: a lazy factor of a lazy factor, or windows of one, is evaluated by three evaluations on
// one stack. The triangle of 2 q is 2, so its factor is q again.
TEST(Eval, OfNestedFactorsNeedsNoMoreStackThanIsStated) {
  constexpr index_t rows = 2000, columns = 40;
  const tensor x =
      eval(astype(arange(rows * columns) * 7919 % 10007, dtype::float64)).view({columns, rows});
  executor alone({.threads = 1});
  tensor q, of_q, of_both, mean_of_q, mean_of_both, sums;
  run_on_a_stack_of(stated_stack_bytes, [&] {
    const executor::scope within(alone);
    const expr lazy = tsqr(expr(x).swapaxes(0, 1) * 2 + 1).q;
    const expr nested = tsqr(lazy * 2).q;
    q = eval(lazy);
    of_q = eval(nested * 1);
    of_both = eval(tsqr(nested * 2).q);
    mean_of_q = eval(rolling_mean(lazy, 2, 0));
    mean_of_both = eval(rolling_mean(nested, 2, 0));
    sums = eval(sum(nested, {0}));
  });
  const auto wanted = elements_of<double>(q);
  std::vector<double> means, totals(static_cast<std::size_t>(columns));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (i >= totals.size()) means.push_back((wanted[i - totals.size()] + wanted[i]) / 2);
    totals[i % totals.size()] += wanted[i];
  }
  const auto expect_near = [](const tensor& found, const std::vector<double>& numbers) {
    const auto own = elements_of<double>(found);
    ASSERT_EQ(own.size(), numbers.size());
    for (std::size_t i = 0; i < own.size(); ++i) ASSERT_NEAR(own[i], numbers[i], 1e-10) << i;
  };
  expect_near(of_q, wanted);
  expect_near(of_both, wanted);
  expect_near(mean_of_q, means);
  expect_near(mean_of_both, means);
  expect_near(sums, totals);
}

TEST(Fill, StoresAnyNumberThatTheDtypeHolds) {
  const scalar values[] = {true,
                           300,
                           -1.75,
                           std::complex<double>(2, 7),
                           float16(0.5f),
                           float8_e5m2(2.0f),
                           float8_e4m3fn(3.0f),
                           bfloat16(1.5f),
                           std::numeric_limits<double>::infinity(),
                           std::uint64_t{1} << 63};
  for (const scalar& value : values) {
    const auto expect_filled = [&]<class T>(std::type_identity<T>) {
      const tensor out = tensor::zeros({3}, dtype_of<T>());
      if (!value.fits(dtype_of<T>())) {
        EXPECT_EQ(code_of([&] { fill(out, value); }), errc::invalid_argument);
        EXPECT_EQ(code_of([&] { full({3}, value, dtype_of<T>()); }), errc::invalid_argument);
        EXPECT_EQ(code_of([&] { tensor::full({3}, value, dtype_of<T>()); }),
                  errc::invalid_argument);
        EXPECT_TRUE(equal_bits(out, tensor::zeros({3}, dtype_of<T>())));
        return;
      }
      fill(out, value);
      EXPECT_TRUE(equal_bits(out, tensor::full({3}, value, dtype_of<T>())));
      EXPECT_TRUE(equal_bits(out, eval(full({3}, value, dtype_of<T>()))));
      const T wanted = value.as<T>();
      for (const T& got : elements_of<T>(out))
        EXPECT_EQ(std::memcmp(&got, &wanted, sizeof wanted), 0)
            << value.to_string() << " of " << name(value.dtype()) << " as " << name(dtype_of<T>());
    };
    for (int code = 1; code <= 17; ++code)
      visit(*dtype_from_code(static_cast<std::uint8_t>(code)), all_types{}, expect_filled);
  }
}

TEST(Fill, RefusesOutputsThatShareElements) {
  const tensor row = tensor::zeros({1, 4}, dtype::float32);
  EXPECT_EQ(code_of([&] { fill(row.broadcast_to({3, 4}), 1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { fill(row.as_strided({2, 3}, {1, 1}, 0), 1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { fill(row.as_read_only(), 1); }), errc::access_denied);
  const tensor nothing = tensor::zeros({0, 3}, dtype::float32);
  fill(nothing, 1);
  EXPECT_EQ(code_of([&] { fill(nothing.as_read_only(), 1); }), errc::access_denied);
  EXPECT_EQ(code_of([&] { eval_into(nothing.as_read_only(), expr(nothing) + 1); }),
            errc::access_denied);
  EXPECT_EQ(elements_of<float>(row), std::vector<float>(4, 0));
}

TEST(Copy, ConvertsAndBroadcastsBetweenAnyLayouts) {
  random_choices choose(2);
  for (int round = 0; round < 200; ++round) {
    const dims shape = random_shape(choose);
    dims from_shape = shape;
    for (index_t& extent : from_shape)
      if (choose(0, 3) == 0) extent = 1;
    const tensor source = random_tensor<std::int16_t>(choose, from_shape);
    const tensor to = random_tensor<double>(choose, shape, sharing::distinct);
    std::vector<double> expected;
    const auto given = elements_of<std::int16_t>(source);
    for (const index_t position : broadcast_positions(from_shape, shape))
      expected.push_back(given[static_cast<std::size_t>(position)]);
    copy(to, source);
    EXPECT_EQ(elements_of<double>(to), expected) << to_string(from_shape) << to_string(shape);
  }
}

TEST(Copy, OfOverlappingTensorsIsAsIfTheInputHadBeenCopiedFirst) {
  random_choices choose(3);
  for (const index_t length : {index_t{7}, index_t{1000}, index_t{100'000}}) {
    for (const index_t shift : {index_t{1}, index_t{3}}) {
      for (const bool forwards : {false, true}) {
        const tensor whole = random_tensor<std::int32_t>(choose, dims{length}, sharing::distinct);
        auto expected = elements_of<std::int32_t>(whole);
        const auto before = expected;
        const index_t from = forwards ? 0 : shift, to = forwards ? shift : 0;
        for (index_t i = 0; i < length - shift; ++i)
          expected[static_cast<std::size_t>(to + i)] = before[static_cast<std::size_t>(from + i)];
        copy(whole.narrow(0, to, length - shift), whole.narrow(0, from, length - shift));
        EXPECT_EQ(elements_of<std::int32_t>(whole), expected) << length << ' ' << shift;
      }
    }
  }
  const tensor square = random_tensor<std::int32_t>(choose, dims{50, 50}, sharing::distinct);
  const auto before = elements_of<std::int32_t>(square);
  copy(square, square.swapaxes(0, 1));
  const auto after = elements_of<std::int32_t>(square);
  for (std::size_t i = 0; i < 50; ++i)
    for (std::size_t j = 0; j < 50; ++j) ASSERT_EQ(after[i * 50 + j], before[j * 50 + i]);
}

TEST(FullTensor, IsRowMajorAndOfItsOwn) {
  const tensor made = tensor::full({2, 3}, 2.0, dtype::int16);
  EXPECT_EQ(made.dtype(), dtype::int16);
  EXPECT_EQ(made.shape(), (dims{2, 3}));
  EXPECT_TRUE(made.is_contiguous());
  EXPECT_TRUE(made.writable());
  EXPECT_EQ(elements_of<std::int16_t>(made), std::vector<std::int16_t>(6, 2));
  EXPECT_EQ(tensor::full({0, 3}, 1, dtype::float64).size(), 0);
  EXPECT_EQ(tensor::full({}, 7, dtype::uint8).item(), scalar(7));
}

TEST(Equal, ComparesNumbersNotBits) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const tensor x = tensor::of<double>({0.0, 1.5, -2.0});
  EXPECT_TRUE(array_equal(x, tensor::of<double>({-0.0, 1.5, -2.0})));
  EXPECT_TRUE(array_equal(x, tensor::of<float>({0.0f, 1.5f, -2.0f})));
  EXPECT_FALSE(array_equal(x, tensor::of<double>({0.0, 1.5, -2.0000000000000004})));
  EXPECT_FALSE(array_equal(tensor::of<double>({nan}), tensor::of<double>({nan})));
  EXPECT_TRUE(array_equal(x.flip(), tensor::of<double>({-2.0, 1.5, 0.0})));
}

TEST(Equal, ComparesShapesWithoutBroadcasting) {
  const tensor one = tensor::of<float>({1.0f});
  EXPECT_FALSE(array_equal(one, tensor::of<float>({1.0f, 1.0f})));
  EXPECT_FALSE(array_equal(one, one.squeeze()));
  EXPECT_TRUE(array_equal(tensor::zeros({0, 2}, dtype::int8), tensor::zeros({0, 2}, dtype::int64)));
  EXPECT_FALSE(array_equal(tensor::zeros({0, 2}, dtype::int8), tensor::zeros({2, 0}, dtype::int8)));
}

// The only different element of a large tensor is found at any position.
TEST(Equal, SeesEveryElement) {
  constexpr index_t size = 300'001;
  const tensor x = tensor::zeros({size}, dtype::int32);
  const tensor y = tensor::zeros({size}, dtype::int32);
  for (const index_t position : {index_t{0}, index_t{2047}, size / 2, size - 1}) {
    tensor changed = y;
    changed.set({position}, 1);
    EXPECT_FALSE(array_equal(x, y)) << position;
    changed.set({position}, 0);
    EXPECT_TRUE(array_equal(x, y)) << position;
  }
}

// The oracle is a loop with NumPy's rule.
TEST(Allclose, FollowsNumPysRule) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> values{0.0,  -0.0, 1.0,        1.0 + 9e-6, 1.0 + 2e-5, 1e-8, 2e-8,
                                   -1.0, 1e10, 1e10 + 9e4, 1e10 + 2e5, inf,        -inf, nan};
  for (const double a : values)
    for (const double b : values) {
      const bool near = std::isinf(b) ? false : std::fabs(a - b) <= 1e-8 + 1e-5 * std::fabs(b);
      const tensor x = tensor::of<double>({a, 1.0}), y = tensor::of<double>({b, 1.0});
      EXPECT_EQ(allclose(x, y), near || a == b) << a << " and " << b;
      EXPECT_EQ(allclose(x, y, {.nan_equals_nan = true}),
                near || a == b || (std::isnan(a) && std::isnan(b)));
      EXPECT_EQ(allclose(x, y, {.relative = 0, .absolute = 0}), a == b);
    }
  EXPECT_TRUE(allclose(tensor::of<float>({1.0f, 1.0f}), 1.0));
  EXPECT_TRUE(allclose(tensor::zeros({0}, dtype::int8), 1.0));
  // In complex64 the magnitudes of these opposite numbers would overflow to infinity.
  const std::complex<float> large(3e38f, 3e38f);
  EXPECT_FALSE(allclose(tensor::of<std::complex<float>>({large}),
                        tensor::of<std::complex<float>>({-large})));
  EXPECT_EQ(
      code_of([] { allclose(tensor::zeros({2}, dtype::int8), tensor::zeros({3}, dtype::int8)); }),
      errc::invalid_argument);
}

}  // namespace
}  // namespace shale::test
