// Tests functions that are made of other expressions: statistics without NaN, exponentials, norms,
// matrices and spaced numbers. The oracles compute element by element, in wider arithmetic.
#include "shale/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "shale/error.hpp"
#include "shale/functions.hpp"
#include "shale/ops.hpp"
#include "support/failures.hpp"
#include "support/random_tensors.hpp"

namespace shale {
namespace {

using test::code_of;
using test::elements_of;
using test::random_choices;

constexpr double none = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

tensor matrix(const std::vector<double>& values, const dims& shape) {
  const tensor made = tensor::empty(shape, dtype::float64);
  std::copy(values.begin(), values.end(), made.elements<double>().begin());
  return made;
}

void expect_near(const expr& value, const std::vector<double>& wanted, double relative = 1e-14) {
  const auto got = elements_of<double>(eval(astype(value, dtype::float64)));
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(wanted[i])) EXPECT_TRUE(std::isnan(got[i])) << i << ": " << got[i];
    else if (std::isinf(wanted[i])) EXPECT_EQ(got[i], wanted[i]) << i;
    else EXPECT_NEAR(got[i], wanted[i], relative * std::max(1.0, std::fabs(wanted[i]))) << i;
  }
}

/// Reduces the rows of a matrix by a function of their elements.
using of_row = std::function<long double(const std::vector<long double>&)>;
std::vector<double> of_rows(const tensor& values, bool drop_nan, const of_row& reduce) {
  const auto elements = elements_of<double>(values);
  const auto columns = static_cast<std::size_t>(values.shape(1));
  std::vector<double> results;
  for (std::size_t first = 0; first < elements.size(); first += columns) {
    std::vector<long double> row;
    for (std::size_t k = 0; k < columns; ++k)
      if (!drop_nan || !std::isnan(elements[first + k])) row.push_back(elements[first + k]);
    results.push_back(static_cast<double>(reduce(row)));
  }
  return results;
}

long double mean_of(const std::vector<long double>& row) {
  long double sum = 0;
  for (const long double x : row) sum += x;
  return row.empty() ? static_cast<long double>(none) : sum / static_cast<long double>(row.size());
}

of_row variance(int correction) {
  return [=](const std::vector<long double>& row) -> long double {
    const long double divisor = static_cast<long double>(row.size()) - correction;
    if (divisor <= 0) return none;
    long double sum = 0;
    for (const long double x : row) sum += (x - mean_of(row)) * (x - mean_of(row));
    return sum / divisor;
  };
}

TEST(Statistics, WithoutNanAreThoseOfTheNumbers) {
  random_choices choose(1);
  const tensor values = tensor::empty({40, 7}, dtype::float64);
  for (double& x : values.elements<double>())
    x = choose(0, 2) == 0 ? none : static_cast<double>(choose(-50, 50)) / 8;
  for (index_t column = 0; column < 7; ++column) values.set({3, column}, none);
  for (index_t column = 0; column < 6; ++column) values.set({4, column}, none);
  const auto folded = [](long double start, auto step) {
    return [=](const std::vector<long double>& row) {
      long double result = start;
      for (const long double x : row) result = step(result, x);
      return result;
    };
  };
  const auto or_none = [](const of_row& reduce) {
    return [=](const std::vector<long double>& row) -> long double {
      return row.empty() ? static_cast<long double>(none) : reduce(row);
    };
  };
  const auto expect = [&](const expr& got, const of_row& wanted) {
    expect_near(got, of_rows(values, true, wanted));
  };
  expect(nansum(values, {1}), folded(0, [](auto a, auto b) { return a + b; }));
  expect(nanprod(values, {1}), folded(1, [](auto a, auto b) { return a * b; }));
  expect(nanmean(values, {1}), mean_of);
  expect(nanmin(values, {1}),
         or_none(folded(infinity, [](auto a, auto b) { return a < b ? a : b; })));
  expect(nanmax(values, {1}),
         or_none(folded(-infinity, [](auto a, auto b) { return a > b ? a : b; })));
  for (const int correction : {0, 1, 3}) {
    expect(nanvar(values, {1}, keepdims::no, correction), variance(correction));
    expect(square(nanstd(values, {1}, keepdims::no, correction)), variance(correction));
  }
  EXPECT_EQ(nanvar(values, {0}, keepdims::yes).shape(), (dims{1, 7}));
  EXPECT_EQ(nanmean(values).rank(), 0);
}

TEST(Statistics, OfNumbersWithoutNanAreThePlainOnes) {
  random_choices choose(2);
  const tensor whole = test::random_tensor<std::int32_t>(choose, {30, 9});
  EXPECT_TRUE(equal_bits(eval(nansum(whole, {0})), eval(sum(whole, {0}))));
  EXPECT_TRUE(equal_bits(eval(nanmean(whole)), eval(mean(whole))));
  EXPECT_TRUE(equal_bits(eval(nanmax(whole, {1})), eval(max(whole, {1}))));
  EXPECT_TRUE(equal_bits(eval(nanstd(whole, {1})), eval(stddev(whole, {1}))));
  for (const dtype type : {dtype::float16, dtype::bfloat16, dtype::float32, dtype::complex64})
    EXPECT_EQ(nanmean(astype(whole, type)).dtype(), type);
  EXPECT_EQ(nanvar(astype(whole, dtype::complex64)).dtype(), dtype::float32);
}

TEST(Statistics, WithoutNanOfInfinitiesHaveNoVariance) {
  const tensor values = matrix(
      {infinity, infinity, none, 1, infinity, none, -infinity, infinity, 0, 1, 3, none}, {4, 3});
  expect_near(nanvar(values, {1}), {none, none, none, 1});
  expect_near(nanstd(values, {1}, keepdims::yes), {none, none, none, 1});
  expect_near(nanvar(astype(values, dtype::float16), {1}), {none, none, none, 1});
}

TEST(Statistics, PositionsWithoutNanAreThoseOfTheFirstExtremes) {
  random_choices choose(3);
  const std::vector<double> drawn{none, none, infinity, -infinity, -1, 0, 2.5};
  for (int round = 0; round < 200; ++round) {
    const dims shape{choose(1, 6), choose(1, 6)};
    const tensor values = tensor::empty(shape, dtype::float64);
    // Often all numbers are infinite, and of one sign.
    const index_t kinds = choose(2, static_cast<index_t>(drawn.size()) - 1);
    for (double& x : values.elements<double>())
      x = drawn[static_cast<std::size_t>(choose(0, kinds))];
    const auto elements = elements_of<double>(values);
    const auto position = [&](const std::vector<std::size_t>& places, bool largest) {
      std::int64_t best = -1;
      for (std::size_t k = 0; k < places.size(); ++k) {
        const double x = elements[places[k]];
        if (std::isnan(x)) continue;
        const double so_far = best < 0 ? x : elements[places[static_cast<std::size_t>(best)]];
        if (best < 0 || (largest ? x > so_far : x < so_far)) best = static_cast<std::int64_t>(k);
      }
      return best;
    };
    const auto rows = static_cast<std::size_t>(shape[0]);
    const auto columns = static_cast<std::size_t>(shape[1]);
    for (const bool largest : {false, true}) {
      std::vector<std::int64_t> in_columns, in_rows, in_all;
      std::vector<std::size_t> all;
      for (std::size_t k = 0; k < elements.size(); ++k) all.push_back(k);
      in_all.push_back(position(all, largest));
      for (std::size_t column = 0; column < columns; ++column) {
        std::vector<std::size_t> places;
        for (std::size_t row = 0; row < rows; ++row) places.push_back(row * columns + column);
        in_columns.push_back(position(places, largest));
      }
      for (std::size_t row = 0; row < rows; ++row) {
        std::vector<std::size_t> places;
        for (std::size_t column = 0; column < columns; ++column)
          places.push_back(row * columns + column);
        in_rows.push_back(position(places, largest));
      }
      const auto found = [&](const expr& of, std::optional<index_t> axis, keepdims keep) {
        return eval(largest ? nanargmax(of, axis, keep) : nanargmin(of, axis, keep));
      };
      for (const dtype type : {dtype::float64, dtype::float16}) {
        const expr of = astype(values, type);
        EXPECT_EQ(elements_of<std::int64_t>(found(of, 0, keepdims::no)), in_columns);
        EXPECT_EQ(elements_of<std::int64_t>(found(of, -1, keepdims::yes)), in_rows);
        EXPECT_EQ(elements_of<std::int64_t>(found(of, std::nullopt, keepdims::no)), in_all);
      }
    }
  }
  const tensor whole = test::random_tensor<std::int32_t>(choose, {30, 9});
  EXPECT_TRUE(equal_bits(eval(nanargmax(whole, 1)), eval(argmax(whole, 1))));
  EXPECT_EQ(nanargmin(astype(whole, dtype::float32), 0, keepdims::yes).shape(), (dims{1, 9}));
  const auto refuses = [](auto call) { EXPECT_EQ(code_of(call), errc::invalid_argument); };
  refuses([] { nanargmin(tensor::zeros({2, 0}, dtype::float32), 1); });
  refuses([] { nanargmin(tensor::zeros({3}, dtype::complex64)); });
  refuses([] { nanargmax(tensor::zeros({3}, dtype::float32), 1); });
}

// 16-bit floats neither count nor add beyond 65,504.
TEST(Statistics, OfManySmallFloatsDoNotOverflow) {
  const expr many = full({100'000}, 2.0, dtype::float16);
  expect_near(nanmean(many), {2});
  expect_near(nanvar(many), {0});
  expect_near(logsumexp(many), {2 + std::log(100'000.0)}, 1e-3);
  EXPECT_EQ(softmax(many).dtype(), dtype::float16);
}

TEST(Statistics, OfExponentialsDoNotOverflow) {
  const tensor values = matrix(
      {1,         2,         3,         -4,        1000, 1001,      999,      1000, -1000, -1001,
       -1002,     -1000,     -infinity, 0,         1,    -infinity, infinity, 0,    0,     0,
       -infinity, -infinity, -infinity, -infinity, none, 0,         0,        0},
      {7, 4});
  const of_row sum_of_powers = [](const std::vector<long double>& row) -> long double {
    long double largest = row[0];
    for (const long double x : row) largest = std::max(largest, x);
    if (std::isinf(largest)) return largest;
    long double sum = 0;
    for (const long double x : row) sum += std::exp(x - largest);
    return largest + std::log(sum);
  };
  auto wanted = of_rows(values, false, sum_of_powers);
  wanted[6] = none;
  expect_near(logsumexp(values, {1}), wanted);
  expect_near(logsumexp(values, {1}, keepdims::yes), wanted);
  std::vector<double> shares, logarithms;
  const tensor finite = values.narrow(0, 0, 4);
  const auto elements = elements_of<double>(finite);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    logarithms.push_back(elements[i] - wanted[i / 4]);
    shares.push_back(std::exp(logarithms.back()));
  }
  expect_near(softmax(finite), shares, 1e-13);
  expect_near(log_softmax(finite, 1), logarithms, 1e-13);
  expect_near(softmax(finite.swapaxes(0, 1), 0).swapaxes(0, 1), shares, 1e-13);
  expect_near(sum(softmax(astype(arange(10), dtype::int8))), {1}, 1e-6);
}

TEST(Statistics, OfAnAxisWithoutElementsAreEmpty) {
  for (const auto function : {&softmax, &log_softmax}) {
    EXPECT_EQ(eval(function(zeros({3, 0}), 1)).shape(), (dims{3, 0}));
    EXPECT_EQ(eval(function(zeros({0, 3}), 1)).shape(), (dims{0, 3}));
    EXPECT_EQ(function(zeros({2, 0}, dtype::int8), -1).dtype(), dtype::float32);
    EXPECT_EQ(function(zeros({2, 0}, dtype::float16), -1).dtype(), dtype::float16);
    EXPECT_EQ(code_of([&] { function(zeros({3, 0}), 2); }), errc::invalid_argument);
  }
}

TEST(Statistics, RefuseComplexOrder) {
  const tensor complex = tensor::zeros({3}, dtype::complex64);
  for (const auto& call :
       std::vector<std::function<void()>>{[&] { nanmin(complex); }, [&] { logsumexp(complex); },
                                          [&] { softmax(complex); }, [&] { log_softmax(complex); }})
    EXPECT_EQ(code_of(call), errc::invalid_argument);
  EXPECT_EQ(code_of([] { nanmax(zeros({0})); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { softmax(zeros({3}), 1); }), errc::invalid_argument);
}

TEST(Norms, AreSumsOfPowers) {
  const tensor values = matrix({3, -4, 0, 0, 1, -2, 2, 0}, {2, 4});
  expect_near(vector_norm(values, 2, {1}), {5, 3});
  expect_near(vector_norm(values, 1, {1}), {7, 5});
  expect_near(vector_norm(values, 0, {1}), {2, 3});
  expect_near(vector_norm(values, infinity, {1}), {4, 2});
  expect_near(vector_norm(values, -infinity, {1}), {0, 0});
  expect_near(vector_norm(values, 3, {1}), {std::cbrt(91.0), std::cbrt(17.0)});
  expect_near(vector_norm(values), {std::sqrt(34.0)});
  const tensor complex = tensor::full({4}, std::complex<double>(3, 4), dtype::complex128);
  expect_near(vector_norm(complex), {10});
  EXPECT_EQ(vector_norm(tensor::full({4}, 3, dtype::int32)).dtype(), dtype::float64);
  EXPECT_EQ(code_of([&] { vector_norm(values, none); }), errc::invalid_argument);
}

// The magnitude of the lowest integer is no integer of its dtype.
TEST(Norms, OfTheLowestIntegersArePositive) {
  const tensor lowest = tensor::of<std::int8_t>({-128, 3});
  expect_near(vector_norm(lowest, 1), {131});
  expect_near(vector_norm(lowest, 2), {std::sqrt(16393.0)}, 1e-6);
  expect_near(vector_norm(lowest, infinity), {128});
  expect_near(vector_norm(lowest, -infinity), {3});
  expect_near(vector_norm(lowest, 0), {2});
  expect_near(vector_norm(lowest, 0.5), {131 + 2 * std::sqrt(384.0)}, 1e-6);
  EXPECT_EQ(vector_norm(lowest).dtype(), dtype::float32);
  const tensor widest = tensor::of<std::int64_t>({std::numeric_limits<std::int64_t>::min()});
  expect_near(vector_norm(widest, infinity), {0x1p63});
}

TEST(Matrices, HaveTheirDiagonals) {
  random_choices choose(3);
  for (int round = 0; round < 60; ++round) {
    const index_t rows = choose(1, 6), columns = choose(1, 6), diagonal = choose(-7, 7);
    const tensor values = test::random_tensor<std::int16_t>(choose, {2, rows, columns});
    const tensor ones = eval(eye(rows, columns, diagonal, dtype::int16));
    const tensor lower = eval(tril(values, diagonal)), upper = eval(triu(values, diagonal));
    std::int64_t sums[2] = {0, 0};
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < columns; ++j) {
        EXPECT_EQ(ones.at({i, j}).to<int>(), j - i == diagonal ? 1 : 0);
        for (const index_t k : {0, 1}) {
          const int value = values.at({k, i, j}).to<int>();
          EXPECT_EQ(lower.at({k, i, j}).to<int>(), j - i <= diagonal ? value : 0);
          EXPECT_EQ(upper.at({k, i, j}).to<int>(), j - i >= diagonal ? value : 0);
          if (j - i == diagonal) sums[k] += value;
        }
      }
    const bool exists = diagonal > -rows && diagonal < columns;
    if (!exists) continue;
    const tensor traces = eval(trace(values, diagonal));
    for (const index_t k : {0, 1}) EXPECT_EQ(traces.at({k}).to<std::int64_t>(), sums[k]);
  }
  EXPECT_EQ(code_of([] { tril(zeros({3})); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { trace(zeros({3})); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { eye(-1); }), errc::invalid_argument);
}

TEST(Matrices, OuterProductsMeetEveryPair) {
  const tensor a = tensor::of({1, 2, 3}), b = tensor::of({10.0, 20.0});
  expect_near(outer(a, b), {10, 20, 20, 40, 30, 60});
  EXPECT_EQ(outer(a.reshape({3, 1}), b).shape(), (dims{3, 2}));
}

TEST(Matrices, OuterProductsOfNumbersHaveTheDtypeOfTheTensor) {
  const tensor large = tensor::of<std::uint64_t>({1, std::uint64_t{1} << 62});
  const tensor products = eval(outer(2, large));
  EXPECT_EQ(products.dtype(), dtype::uint64);
  EXPECT_EQ(elements_of<std::uint64_t>(products),
            (std::vector<std::uint64_t>{2, std::uint64_t{1} << 63}));
  EXPECT_EQ(outer(tensor::of({1.f}), 0.5).dtype(), dtype::float32);
  EXPECT_EQ(outer(0.5, 2).dtype(), dtype::float64);
  EXPECT_EQ(code_of([] { outer(tensor::of<std::uint8_t>({1}), 300); }), errc::invalid_argument);
}

TEST(Matrices, OfOneDiagonalKeepWhatIsNotFinite) {
  const tensor values = tensor::of({1.f, static_cast<float>(infinity), static_cast<float>(none)});
  const tensor made = eval(where(eye(3, {}, 0, dtype::boolean), values, 0));
  EXPECT_EQ(made.dtype(), dtype::float32);
  expect_near(made, {1, 0, 0, 0, infinity, 0, 0, 0, none});
}

TEST(SpacedNumbers, EndExactlyWhereTheySay) {
  for (const index_t count : {1, 2, 3, 7, 50, 1001}) {
    const auto got = elements_of<double>(eval(linspace(0.1, 0.7, count)));
    ASSERT_EQ(static_cast<index_t>(got.size()), count);
    EXPECT_EQ(got.front(), 0.1);
    EXPECT_EQ(got.back(), count > 1 ? 0.7 : 0.1);
    for (std::size_t k = 0; k < got.size(); ++k)
      EXPECT_NEAR(
          got[k],
          0.1 + 0.6 * static_cast<double>(k) / std::max<double>(1, static_cast<double>(count) - 1),
          1e-15);
  }
  expect_near(logspace(0, 3, 4), {1, 10, 100, 1000});
  expect_near(logspace(3, -1, 5, 2), {8, 4, 2, 1, 0.5});
  EXPECT_EQ(linspace(1, 2, 0).shape(), dims{0});
  EXPECT_EQ(code_of([] { linspace(0, 1, -1); }), errc::invalid_argument);
}

TEST(SpacedNumbers, BetweenEndsThatAreFarApartAreFinite) {
  for (const double end : {1.5e308, -1.5e308, std::numeric_limits<double>::max()})
    for (const index_t count : {2, 3, 5, 1001}) {
      const auto got = elements_of<double>(eval(linspace(-end, end, count)));
      ASSERT_EQ(static_cast<index_t>(got.size()), count);
      EXPECT_EQ(got.front(), -end);
      EXPECT_EQ(got.back(), end);
      for (std::size_t k = 0; k < got.size(); ++k)
        EXPECT_NEAR(got[k] / end, 2 * static_cast<double>(k) / (static_cast<double>(count) - 1) - 1,
                    1e-15);
    }
  expect_near(linspace(0, infinity, 3), {0, infinity, infinity});
  expect_near(linspace(-infinity, 1, 3), {-infinity, -infinity, 1});
}

TEST(Roll, MovesElementsRoundTheAxis) {
  random_choices choose(4);
  for (int round = 0; round < 100; ++round) {
    const index_t rows = choose(1, 7), columns = choose(1, 7);
    const tensor values = test::random_tensor<std::int32_t>(choose, {rows, columns});
    const index_t shift = choose(-20, 20), axis = choose(0, 1);
    const tensor got = eval(roll(values, shift, dims{axis}));
    const tensor flat = eval(roll(values, shift));
    const auto wrapped = [](index_t i, index_t n) { return (i % n + n) % n; };
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < columns; ++j) {
        const index_t from_i = axis == 0 ? wrapped(i - shift, rows) : i;
        const index_t from_j = axis == 1 ? wrapped(j - shift, columns) : j;
        EXPECT_EQ(got.at({i, j}), values.at({from_i, from_j}));
        const index_t from = wrapped(i * columns + j - shift, rows * columns);
        EXPECT_EQ(flat.at({i, j}), values.at({from / columns, from % columns}));
      }
  }
  EXPECT_EQ(roll(zeros({0, 3}), 2).shape(), (dims{0, 3}));
  EXPECT_EQ(code_of([] { roll(zeros({3}), 1, dims{1}); }), errc::invalid_argument);
}

TEST(Roll, MovesAlongTheLongestAxis) {
  constexpr index_t longest = std::numeric_limits<index_t>::max();
  const tensor values = tensor::zeros({}, dtype::int8).broadcast_to({longest});
  for (const index_t shift : {longest - 1, index_t{-1}, -longest / 2})
    EXPECT_EQ(roll(values, shift, dims{0}).shape(), dims{longest});
}

TEST(IsClose, AllowsBothDistances) {
  const tensor a = matrix({1, 1, 100, infinity, infinity, none, 0}, {7});
  const tensor b = matrix({1.000009, 1.0001, 100.0009, infinity, -infinity, none, 1e-9}, {7});
  EXPECT_TRUE(
      equal_bits(eval(isclose(a, b)), tensor::of({true, false, true, true, false, false, true})));
  EXPECT_TRUE(equal_bits(eval(isclose(tensor::of({200, 5}), tensor::of({201, 9}), 0, 1)),
                         tensor::of({true, false})));
  EXPECT_TRUE(equal_bits(eval(isclose(astype(tensor::of({200, 5}), dtype::uint8),
                                      astype(tensor::of({201, 9}), dtype::uint8), 0, 1)),
                         tensor::of({true, false})));
}

}  // namespace
}  // namespace shale
