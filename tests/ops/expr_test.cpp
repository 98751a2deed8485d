#include "shale/expr.hpp"
#include "shale/functions.hpp"
#include "shale/reductions.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <thread>

#include "ops/graph/graph.hpp"
#include "ops/graph/views.hpp"
#include "parallel/fold/reduction_tree.hpp"
#include "shale/apply.hpp"
#include "shale/error.hpp"
#include "shale/evaluate.hpp"
#include "shale/executor.hpp"
#include "shale/memory_pool.hpp"
#include "support/failures.hpp"
#include "support/instrumented.hpp"
#include "support/random_tensors.hpp"
#include "support/run_on.hpp"
#include "support/small_stack.hpp"

namespace shale {
namespace {

using test::code_of;
using test::elements_of;
using test::random_choices;
using test::random_tensor;
using test::sharing;

// Elements for which every rounding changes the result.
tensor fractions(const dims& shape, std::uint64_t seed = 1) {
  random_choices choose(seed);
  tensor made = tensor::empty(shape, dtype::float32);
  for (auto& element : made.elements<float>())
    element = 1 / (static_cast<float>(choose(0, 1000000)) + 0.3f);
  return made;
}

TEST(ExprTypes, NumbersAdaptToTheTensorTheyMeet) {
  const auto operand = [](dtype type) { return expr(tensor::zeros({2}, type)); };
  EXPECT_EQ((operand(dtype::float32) + 0.5).dtype(), dtype::float32);
  EXPECT_EQ((operand(dtype::float16) * 2).dtype(), dtype::float16);
  EXPECT_EQ((operand(dtype::uint8) + 1).dtype(), dtype::uint8);
  EXPECT_EQ((operand(dtype::int32) + 0.5).dtype(), dtype::float64);
  EXPECT_EQ((operand(dtype::int8) + 0.5).dtype(), dtype::float32);
  EXPECT_EQ((operand(dtype::int32) / 2).dtype(), dtype::float64);
  EXPECT_EQ((operand(dtype::boolean) + 1).dtype(), dtype::int64);
  EXPECT_EQ((operand(dtype::float32) * std::complex<double>(0, 1)).dtype(), dtype::complex64);
  EXPECT_EQ((expr(1.0) / 3 * operand(dtype::float32)).dtype(), dtype::float32);
  EXPECT_EQ((operand(dtype::float32) < 1).dtype(), dtype::boolean);
  EXPECT_EQ(abs(operand(dtype::complex64)).dtype(), dtype::float32);
  EXPECT_EQ(mean(operand(dtype::int32)).dtype(), dtype::float64);
  EXPECT_EQ(code_of([&] { operand(dtype::uint8) + 300; }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { operand(dtype::int64) + operand(dtype::uint64); }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] { operand(dtype::float8_e5m2) + operand(dtype::float8_e5m2); }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] { where(operand(dtype::int32), 1, 2); }), errc::invalid_argument);
}

TEST(ExprTypes, IntegersAreComparedWithNumbersThatTheyCannotHold) {
  const tensor small = tensor::of({std::int8_t{-128}, std::int8_t{0}, std::int8_t{127}});
  const tensor large = tensor::of({std::uint64_t{0}, ~std::uint64_t{0}});
  const auto compared = [](const expr& a, const expr& b) {
    std::vector<bool> results;
    for (const expr& result : {(a == b), (a != b), (a < b), (a <= b), (a > b), (a >= b)}) {
      EXPECT_EQ(result.dtype(), dtype::boolean);
      const tensor values = eval(result);
      EXPECT_EQ(values.shape(), a.rank() > 0 ? a.shape() : b.shape());
      EXPECT_EQ(eval(all(values)).item(), eval(any(values)).item());
      results.push_back(eval(all(values)).item().as<bool>());
    }
    return results;
  };
  const std::vector<bool> is_less{false, true, true, true, false, false};
  const std::vector<bool> is_greater{false, true, false, false, true, true};
  EXPECT_EQ(compared(small, 128), is_less);
  EXPECT_EQ(compared(small, ~std::uint64_t{0}), is_less);
  EXPECT_EQ(compared(small, -129), is_greater);
  EXPECT_EQ(compared(large, -1), is_greater);
  EXPECT_EQ(compared(128, small), is_greater);
  EXPECT_EQ(compared(-129, small), is_less);
  EXPECT_EQ(compared(-1, large), is_less);
  EXPECT_TRUE(equal_bits(eval(expr(small) == 127), tensor::of({false, false, true})));
}

TEST(ExprTypes, NumbersAloneComputeAtOnce) {
  EXPECT_EQ(eval(expr(2) + 3).item(), scalar(5));
  EXPECT_EQ(eval(expr(1) / 4).item(), scalar(0.25));
  EXPECT_EQ(eval(sqrt(expr(9.0))).item(), scalar(3.0));
}

TEST(ExprMade, RangesFollowTheirSteps) {
  EXPECT_EQ(elements_of<std::int64_t>(eval(arange(2, 12, 3))),
            (std::vector<std::int64_t>{2, 5, 8, 11}));
  EXPECT_EQ(elements_of<std::int64_t>(eval(arange(5, 0, -2))),
            (std::vector<std::int64_t>{5, 3, 1}));
  EXPECT_EQ(arange(3, 3).size(), 0);
  EXPECT_EQ(elements_of<double>(eval(arange(0.0, 1.0, 0.25))),
            (std::vector<double>{0, 0.25, 0.5, 0.75}));
  EXPECT_EQ(arange(4, 9, 2, dtype::int16).dtype(), dtype::int16);
  EXPECT_EQ(code_of([] { arange(0, 3, 0); }), errc::invalid_argument);
  EXPECT_EQ(elements_of<std::int64_t>(eval(arange(6).reshape({2, 3}).flip({1}).select(0, 1))),
            (std::vector<std::int64_t>{5, 4, 3}));
}

// A range has as many numbers as NumPy's arange, or as there are integers between its ends.
TEST(ExprMade, RangesReachTheEndsOfTheirNumbers) {
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  constexpr double endless = std::numeric_limits<double>::infinity();
  using integers = std::vector<std::int64_t>;
  EXPECT_EQ(elements_of<std::int64_t>(eval(arange(least, most, most))),
            (integers{least, -1, most - 1}));
  EXPECT_EQ(elements_of<std::int64_t>(eval(arange(most, least, least))), (integers{most, -1}));
  EXPECT_EQ(elements_of<std::int64_t>(eval(arange(most, least, -most))),
            (integers{most, 0, -most}));
  EXPECT_EQ(elements_of<std::int64_t>(eval(arange(least, most, most).flip({0}))),
            (integers{most - 1, -1, least}));
  EXPECT_EQ(elements_of<std::int64_t>(eval(arange(0, least, least))), integers{0});
  EXPECT_EQ(arange(least, 0, -1).size(), 0);
  EXPECT_EQ(arange(0, most, 1).size(), most);
  EXPECT_EQ(elements_of<double>(eval(arange(3.0, 10.0, endless))), std::vector<double>{3});
  EXPECT_EQ(elements_of<double>(eval(arange(0.0, 5e-324, 1e300))), std::vector<double>{0});
  EXPECT_EQ(arange(3.0, 10.0, -endless).size(), 0);
  EXPECT_EQ(arange(3.0, 3.0, endless).size(), 0);
}

// Long double holds the product of the last step, which double does not.
TEST(ExprMade, RangesMayBeWiderThanTheLargestNumber) {
  const double end = 1.5e308, step = 1e308;
  const double last = static_cast<double>(2 * static_cast<long double>(step) - end);
  EXPECT_EQ(elements_of<double>(eval(arange(-end, end, step))),
            (std::vector<double>{-end, -end + step, last}));
  EXPECT_EQ(elements_of<double>(eval(arange(end, -end, -step))),
            (std::vector<double>{end, end - step, -last}));
  EXPECT_EQ(arange(-end, end, step, dtype::float32).dtype(), dtype::float32);
  EXPECT_EQ(elements_of<double>(eval(arange(-end, end, std::numeric_limits<double>::infinity()))),
            std::vector<double>{-end});
  EXPECT_EQ(arange(-end, end, -step).size(), 0);
  EXPECT_EQ(code_of([&] { arange(-end, end, 1.0); }), errc::invalid_argument);
}

TEST(ExprMade, FullTilesRepeatsAndConcats) {
  EXPECT_EQ(elements_of<float>(eval(full({2, 2}, 1.5, dtype::float32))),
            (std::vector<float>{1.5, 1.5, 1.5, 1.5}));
  EXPECT_EQ(elements_of<std::int64_t>(
                eval(concat(std::vector<expr>{arange(2), arange(0), arange(3)}, 0))),
            (std::vector<std::int64_t>{0, 1, 0, 1, 2}));
  EXPECT_EQ(eval(tile(arange(3), {2, 2})).shape(), (dims{2, 6}));
  EXPECT_EQ(elements_of<std::int64_t>(eval(repeat(arange(3).flip({0}), 2, 0))),
            (std::vector<std::int64_t>{2, 2, 1, 1, 0, 0}));
  EXPECT_EQ(code_of([] { concat(std::vector<expr>{}, 0); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] {
              concat(std::vector<expr>{full({2, 3}, 1), full({2, 4}, 1)}, 0);
            }),
            errc::invalid_argument);
}

TEST(ExprReduce, NormalisesByItsOwnMoments) {
  const tensor x = fractions({70, 301});
  const tensor got = eval((expr(x) - mean(x)) / stddev(x));
  double sum = 0, squares = 0;
  const auto in = elements_of<float>(x);
  for (const double e : in) sum += e;
  const double middle = sum / static_cast<double>(in.size());
  for (const double e : in) squares += (e - middle) * (e - middle);
  const double spread = std::sqrt(squares / static_cast<double>(in.size()));
  const auto out = elements_of<float>(got);
  for (std::size_t i = 0; i < in.size(); ++i)
    ASSERT_NEAR(out[i], (static_cast<double>(in[i]) - middle) / spread,
                1e-5 * (1 + std::abs(static_cast<double>(out[i]))));
}

TEST(ExprReduce, EmptyAxesGiveTheEmptyResult) {
  const tensor x = tensor::zeros({3, 0}, dtype::float32);
  EXPECT_EQ(elements_of<float>(eval(sum(x, dims{1}))), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(elements_of<float>(eval(prod(x, dims{1}))), (std::vector<float>{1, 1, 1}));
  EXPECT_TRUE(std::isnan(eval(mean(x)).item().as<double>()));
  EXPECT_EQ(eval(sum(x, dims{0})).shape(), dims{0});
  EXPECT_EQ(eval(all(x)).item(), scalar(true));
  EXPECT_EQ(eval(any(x)).item(), scalar(false));
  EXPECT_EQ(eval(count_nonzero(x)).item(), scalar(0));
  EXPECT_EQ(code_of([&] { min(x, dims{1}); }), errc::invalid_argument);
  EXPECT_EQ(eval(min(x, dims{0})).shape(), dims{0});
  EXPECT_EQ(code_of([&] { sum(x, dims{0, -2}); }), errc::invalid_argument);
}

TEST(ExprReduce, HasTheSameBitsForAnyNumberOfThreads) {
  executor one({.threads = 1}), two({.threads = 2}), four({.threads = 4});
  for (std::uint64_t seed = 0; seed < test::cases(30); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    tensor x = fractions({choose(1, 9), choose(1, 300), choose(1, 300)}, seed);
    x = x.permute_dims(choose(0, 1) ? dims{2, 0, 1} : dims{1, 2, 0});
    if (choose(0, 1)) x = x.sliced(choose(0, 2), {.step = choose(0, 1) ? -1 : 2});
    dims axes;
    for (index_t axis = 0; axis < 3; ++axis)
      if (choose(0, 1)) axes.push_back(axis);
    const std::vector<expr> values{sum(x, axes), mean(expr(x) * 3, axes), var(x, axes),
                                   prod(expr(x) + 1, axes)};
    const auto expected = test::run_on(one, [&] { return eval_all(values); });
    for (int repetition = 0; repetition < 3; ++repetition)
      for (executor* on : {&two, &four}) {
        const auto got = test::run_on(*on, [&] { return eval_all(values); });
        for (std::size_t k = 0; k < got.size(); ++k)
          ASSERT_TRUE(equal_bits(got[k], expected[k])) << "result " << k;
      }
  }
}

// graph.3
TEST(Expr, SharedPartsStaySharedThroughViews) {
  expr x = fractions({4, 4});
  for (int i = 0; i < 60; ++i) x = x + x;
  for (int i = 0; i < 60; ++i) x = x.reshape({2, 8}).flip({0}).reshape({4, 4}) * 0.5;
  EXPECT_EQ(eval(x).shape(), (dims{4, 4}));
  EXPECT_LE(explain(x).instructions, 200);
}

// graph.3: each view copies the graph, which would have 2^40 nodes without staging.
TEST(Expr, ViewsKeepTheGraphSmall) {
  std::vector<double> expected{1, 2, 4, 8};
  const tensor start = tensor::of<double>({1, 2, 4, 8});
  expr flipped = start, reshaped = expr(start).reshape({2, 2});
  for (int i = 0; i < 40; ++i) {
    flipped = flipped.flip({0}) * 0.25 + flipped;
    reshaped = reshaped.reshape({4}).flip({0}).reshape({2, 2}) * 0.25 + reshaped;
    const std::vector<double> before = expected;
    for (std::size_t k = 0; k < 4; ++k) expected[k] = before[3 - k] * 0.25 + before[k];
  }
  const tensor got = eval(flipped), got_reshaped = eval(reshaped);
  for (index_t k = 0; k < 4; ++k) {
    EXPECT_EQ(got.at({k}).as<double>(), expected[static_cast<std::size_t>(k)]);
    EXPECT_EQ(got_reshaped.at({k / 2, k % 2}).as<double>(), expected[static_cast<std::size_t>(k)]);
  }
}

// tape.1
TEST(Expr, EqualSubexpressionsAreComputedOnce) {
  const tensor a = fractions({100}), b = fractions({100}, 2);
  const expr p = expr(a) * b, q = expr(a) * b;
  EXPECT_EQ(explain(p / q).instructions, explain(p / 2).instructions);
  EXPECT_EQ(explain(p + q).bytes_read, 800u);
}

// tape.4
TEST(Expr, ProductsAreJoinedWithTheSumsThatReadThem) {
  const expr a = fractions({100}), b = fractions({100}, 2), c = fractions({100}, 3);
  EXPECT_EQ(explain(a * b + c).instructions, 1);
  EXPECT_EQ(explain(c + a * b).instructions, 1);
  EXPECT_EQ(explain(a * b - c).instructions, 1);
  EXPECT_EQ(explain(c - a * b).instructions, 1);
  EXPECT_EQ(explain(a * b + b * c).instructions, 2);
  EXPECT_EQ(explain(a * b * c + a).instructions, 2);
  EXPECT_EQ(explain(a * b + c - a * c).instructions, 2);
  const expr p = a * b;
  EXPECT_EQ(explain(p + p).instructions, 2) << "two reads";
  EXPECT_EQ(explain((p + c) * p).instructions, 3) << "another reader";
  EXPECT_EQ(explain(a / b + c).instructions, 2) << "no product";
  EXPECT_EQ(explain(astype(a, dtype::float16) * 2 + 1).instructions,
            explain(astype(a, dtype::float16) * 2 / 3).instructions)
      << "a rounding between the two";
}

// A tensor of any layout with fractions, zeros, and for floats infinities and tiny numbers.
template <class T>
tensor random_factors(random_choices& choose, const dims& shape) {
  tensor made = random_tensor<T>(choose, shape, sharing::distinct);
  apply_in_order(
      [&](T& element) {
        const index_t number = choose(-1'000'000, 1'000'000);
        element = static_cast<T>(number);
        if constexpr (std::is_floating_point_v<T>) {
          const T special[] = {T{0}, -T{0}, std::numeric_limits<T>::infinity(),
                               std::numeric_limits<T>::denorm_min()};
          element = number % 50 == 0 ? special[choose(0, 3)] : element / 7;
        }
      },
      made);
  return made;
}

// tape.4: an evaluated product, added in another call, gives the same bits.
template <class T>
void expect_sums_of_products() {
  random_choices choose(sizeof(T));
  const auto same = [](const tensor& got, const tensor& wanted) {
    return test::element_bytes_of(got, sizeof(T)) == test::element_bytes_of(wanted, sizeof(T));
  };
  for (int round = 0; round < 40; ++round) {
    const dims shape{choose(1, 7), choose(1, 900)};
    const tensor a = random_factors<T>(choose, shape), b = random_factors<T>(choose, shape),
                 c = random_factors<T>(choose, shape);
    const tensor p = eval(expr(a) * b), q = eval(expr(b) * c);
    const tensor added = eval(expr(p) + c);
    const expr product = expr(a) * b;
    EXPECT_TRUE(same(eval(product + c), added));
    EXPECT_TRUE(same(eval(c + product), added));
    EXPECT_TRUE(same(eval(product - c), eval(expr(p) - c)));
    EXPECT_TRUE(same(eval(c - product), eval(expr(c) - p)));
    EXPECT_TRUE(same(eval(product - expr(b) * c), eval(expr(p) - q)));
    const std::vector<expr> shared{product + c, product};
    const std::vector<tensor> both = eval_all(shared);
    EXPECT_TRUE(same(both[0], added));
    EXPECT_TRUE(same(both[1], p));
    const tensor into = a.clone();
    eval_into(into, expr(into) * b + into);
    EXPECT_TRUE(same(into, eval(expr(p) + a)));
  }
}

TEST(Expr, SumsOfProductsRoundTwice) {
  expect_sums_of_products<float>();
  expect_sums_of_products<double>();
  expect_sums_of_products<std::int32_t>();
  expect_sums_of_products<std::uint64_t>();
  const tensor a = fractions({300, 40}), b = fractions({40}, 2), c = fractions({300, 1}, 3);
  const tensor added = eval(expr(eval(expr(a) * b)) + c);
  EXPECT_EQ(elements_of<float>(eval(sum(expr(a) * b + c, {0}))),
            elements_of<float>(eval(sum(added, {0}))));
}

// Large integers that lie close together, in columns and in rows. The oracle subtracts first.
template <class T>
void expect_digits_of_variance(T base) {
  constexpr index_t rows = 365, columns = 100;
  const tensor values = tensor::empty({rows, columns}, dtype_of<T>());
  const tensor distances = tensor::empty({rows, columns}, dtype::float64);
  random_choices choose(sizeof(T));
  for (index_t i = 0; i < rows * columns; ++i) {
    const index_t distance = choose(0, 3);
    values.elements<T>()[static_cast<std::size_t>(i)] =
        static_cast<T>(base + static_cast<T>(distance));
    distances.elements<double>()[static_cast<std::size_t>(i)] = static_cast<double>(distance);
  }
  for (const index_t axis : {0, 1}) {
    const auto got = elements_of<double>(eval(var(values, {axis})));
    const index_t lanes = axis == 0 ? columns : rows, length = rows * columns / lanes;
    for (index_t lane = 0; lane < lanes; ++lane) {
      double sum = 0, squares = 0;
      for (index_t k = 0; k < length; ++k) {
        const tensor along = distances.select(1 - axis, lane);
        const double d = along.at({k}).as<double>();
        sum += d;
        squares += d * d;
      }
      const auto n = static_cast<double>(length);
      const double wanted = (squares - sum * sum / n) / n;
      ASSERT_NEAR(got[static_cast<std::size_t>(lane)], wanted, wanted * 1e-12) << axis << lane;
    }
  }
}

TEST(Expr, VariancesOfLargeIntegersKeepTheirDigits) {
  expect_digits_of_variance<std::uint32_t>(4'294'967'000U);
  expect_digits_of_variance<std::int32_t>(-2'147'483'600);
  expect_digits_of_variance<std::int64_t>(std::int64_t{1} << 62);
}

// The pass that folds writes the output, unless that is strided or read by the pass itself.
TEST(Expr, ReductionsDeliverIntoTheirOutput) {
  const tensor x = fractions({300, 200});
  EXPECT_EQ(explain(sum(x)).passes, 1);
  EXPECT_EQ(explain(var(x, {0})).passes, 1);
  EXPECT_EQ(explain(mean(x, {1}) * 2).passes, 2);
  EXPECT_EQ(explain(mean(x, {1}).flip({0})).passes, 2);
  EXPECT_EQ(explain(sum(x, {1})).staged_bytes_max, 0u);

  const std::vector<float> columns = elements_of<float>(eval(sum(x, {0}) + 0));
  const tensor out = tensor::zeros({200}, dtype::float32);
  const auto version = out.storage().version();
  eval_into(out, sum(x, {0}));
  EXPECT_EQ(elements_of<float>(out), columns);
  EXPECT_GT(out.storage().version(), version);
  const tensor strided = tensor::zeros({200, 3}, dtype::float32).select(1, 1);
  eval_into(strided, sum(x, {0}));
  EXPECT_EQ(elements_of<float>(strided), columns);
  const tensor wide = tensor::zeros({200}, dtype::float64);
  eval_into(wide, sum(x, {0}));
  EXPECT_EQ(elements_of<double>(wide), std::vector<double>(columns.begin(), columns.end()));
  for (const index_t row : {index_t{0}, index_t{150}, index_t{299}}) {
    const tensor changed = x.clone();
    eval_into(changed.select(0, row), sum(changed, {0}));
    EXPECT_EQ(elements_of<float>(changed.select(0, row)), columns) << row;
  }
}

// Whatever is read twice, from views that overlap or by broadcasting, is brought in once.
TEST(ExprPlan, CountsEveryByteOfAPassOnce) {
  const tensor x = fractions({300, 200});
  const tensor row = fractions({200}, 2);
  const std::uint64_t bytes = x.size_bytes();
  const std::vector<std::pair<expr, std::uint64_t>> cases{
      {expr(x) + expr(x).flip({0}), bytes},
      {expr(x.narrow(0, 1, 299)) - x.narrow(0, 0, 299), bytes},
      {expr(x.sliced(1, slice{.step = 2})) + x.sliced(1, slice{.start = 1, .step = 2}), bytes},
      {expr(x.sliced(0, slice{.step = 3})) + 1, bytes / 3},
      {expr(x.narrow(0, 0, 10)) + x.narrow(0, 290, 10), bytes / 300 * 20},
      {expr(x) + row, bytes + 200 * 4},
      {expr(x) + row.expand_dims(0).broadcast_to({300, 200}), bytes + 200 * 4},
      {expr(x) * 2 + tensor::of<float>({3}), bytes + 4},
      {concat(std::vector<expr>{x, x}, 0), bytes},
  };
  for (std::size_t k = 0; k < cases.size(); ++k) {
    SCOPED_TRACE(k);
    executor on({.threads = 2});
    const executor::scope within(on);
    EXPECT_EQ(explain(cases[k].first).bytes_read, cases[k].second);
    eval(cases[k].first);
    EXPECT_EQ(on.statistics().bytes_read, cases[k].second);
  }
}

TEST(Expr, ManyOutputsShareAPass) {
  executor on({.threads = 2});
  const executor::scope within(on);
  const tensor a = fractions({200, 300});
  const std::vector<expr> values{expr(a) + 1, sqrt(expr(a) + 1), expr(a), expr(a) + 1, mean(a)};
  const auto got = eval_all(values);
  EXPECT_TRUE(equal_bits(got[0], got[3]));
  EXPECT_TRUE(equal_bits(got[2], a));
  EXPECT_FALSE(got[2].storage().shares_owner_with(a.storage()));
  const auto base = elements_of<float>(got[0]), root = elements_of<float>(got[1]);
  for (std::size_t i = 0; i < base.size(); ++i) ASSERT_NEAR(root[i], std::sqrt(base[i]), 1e-6);
  EXPECT_LE(on.statistics().bytes_read, 2u * 240000u + 4u);
}

TEST(Expr, EvaluatesManyOutputsOfTheirOwnLeaves) {
  std::vector<expr> values;
  for (int k = 0; k < 100; ++k)
    values.push_back(expr(fractions({10}, static_cast<std::uint64_t>(k))) + k);
  const auto got = eval_all(values);
  for (int k = 0; k < 100; ++k)
    EXPECT_NEAR(got[static_cast<std::size_t>(k)].at({3}).as<double>(), k, 4);
}

// graph.3
TEST(ExprPlan, PredictsTheBytesReadAndWritten) {
  const tensor x = fractions({130, 257}), y = fractions({257}), z = fractions({257, 130});
  const std::vector<expr> values{
      expr(x) + y,
      (expr(x) - mean(x)) / stddev(x),
      sum(expr(x) * expr(z).swapaxes(0, 1), dims{1}) + 1,
      sqrt(square(expr(x)) + square(expr(y))) -
          mean(expr(z), dims{0}, keepdims::yes).reshape({130, 1}),
      concat(std::vector<expr>{expr(x) + 1, x}, 0),
      (expr(x) - mean(x, dims{0}, keepdims::yes)) / stddev(x, dims{0}, keepdims::yes),
  };
  for (std::size_t k = 0; k < values.size(); ++k) {
    SCOPED_TRACE(k);
    executor on({.threads = 2});
    const executor::scope within(on);
    const auto planned = explain(values[k]);
    eval(values[k]);
    const auto did = on.statistics();
    EXPECT_EQ(did.bytes_read, planned.bytes_read) << planned.text;
    EXPECT_EQ(did.bytes_written, planned.bytes_written) << planned.text;
    EXPECT_EQ(did.passes, static_cast<std::uint64_t>(planned.passes));
    EXPECT_LE(planned.scratch_bytes_per_thread, std::uint64_t{2} << 20);
    EXPECT_FALSE(planned.streams);
  }
}

TEST(ExprPlan, LongExpressionsHoldNoTemporaries) {
  memory_pool pool;
  executor on({.threads = 2, .pool = &pool});
  const executor::scope within(on);
  const tensor x = fractions({1024, 2048});
  expr value = x;
  for (int k = 1; k <= 16; ++k) value = sqrt(value * value + k) - expr(x).flip({0}) / k;
  eval(value);
  pool.reset_peak();
  const tensor result = eval(value);
  EXPECT_LE(pool.statistics().peak_live_bytes, result.size_bytes() + 2 * (std::size_t{2} << 20));
  EXPECT_LE(on.statistics().scratch_bytes_peak, 2 * (std::size_t{2} << 20));
}

// Values that are never held may have more bytes than 64 bits can count.
TEST(ExprPlan, CountsNoMoreBytesThanTheLargestNumber) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  const expr one = tensor::zeros({1}, dtype::float64);
  EXPECT_EQ(explain(one.broadcast_to({index_t{1} << 60})).bytes_written, std::uint64_t{1} << 63);
  EXPECT_EQ(explain(one.broadcast_to({index_t{1} << 61})).bytes_written, most);
  EXPECT_EQ(explain(one.broadcast_to({index_t{1} << 62}) + 1).bytes_written, most);
  // A view with 2^60 positions of 16 bytes, over the bytes of 5 * 4095 + 1 elements.
  const tensor few = tensor::zeros({5 * 4095 + 1}, dtype::complex128);
  const expr windows = few.as_strided({4096, 4096, 4096, 4096, 4096}, {1, 1, 1, 1, 1}, 0);
  EXPECT_EQ(explain(windows).bytes_read, few.size_bytes());
  EXPECT_EQ(explain(windows).bytes_written, most);
}

// tape.3
TEST(ExprPlan, ManyLiveRegistersStayInsideTheScratch) {
  const auto made_of = [](const tensor& x) {
    std::vector<expr> parts;
    for (int k = 0; k < 3000; ++k) parts.push_back(expr(x).swapaxes(0, 1) * (k + 0.5f) + x);
    expr total = 0.0f;
    // Every part is used twice, in opposite orders, so that all of them are alive at once.
    for (const auto& part : parts) total = total + part;
    for (std::size_t k = parts.size(); k-- > 0;) total = maximum(total, parts[k]);
    return total;
  };
  EXPECT_LE(explain(made_of(fractions({300, 300}))).scratch_bytes_per_thread,
            std::uint64_t{2} << 20);
  EXPECT_TRUE(std::isfinite(eval(made_of(fractions({30, 30}))).at({1, 2}).as<double>()));
}

// graph.4: a call takes at least 16 bytes of stack, so 20,000 nested calls do not fit. Neither do
// 6,000 times the three calls that lead through a stage.
TEST(Expr, DeepChainsNeedNoStack) {
  test::run_on_a_stack_of(std::size_t{256} << 10, [] {
    const tensor x = fractions({3, 4});
    expr sums = expr(x).swapaxes(0, 1), stages = x;
    for (int k = 0; k < 20000; ++k) sums = sums + 0.25f;
    for (int k = 0; k < 6000; ++k) stages = x - min(stages);
    const expr all = sums.swapaxes(0, 1).reshape({2, 6}) + stages.reshape({2, 6});
    EXPECT_NEAR(eval(all).at({0, 0}).as<double>(), 5000, 1);
  });
}

TEST(Expr, MayBeDroppedByManyThreadsAtOnce) {
  const tensor x = fractions({3, 4});
  for (int repetition = 0; repetition < 200; ++repetition) {
    std::optional<expr> shared = expr(x);
    for (int k = 0; k < 20; ++k) shared = *shared + *shared * 0.5f - min(*shared);
    std::atomic<int> ready = 0;
    std::vector<std::thread> threads;
    for (int k = 0; k < 3; ++k)
      threads.emplace_back([&ready, mine = std::optional<expr>(*shared + 1.0f)]() mutable {
        ++ready;
        while (ready < 3) std::this_thread::yield();
        EXPECT_EQ(mine->shape(), (dims{3, 4}));
        mine.reset();
      });
    shared.reset();
    for (auto& thread : threads) thread.join();
  }
}

// ---- nodes --------------------------------------------------------------------------------------

// graph.1, graph.2
TEST(Graph, HoldsOperationsInTheirOwnShapeOverViewedLeaves) {
  const ops::node_ref x = ops::make_leaf(fractions({3, 4})), y = ops::make_leaf(fractions({4}));
  const ops::node_ref inner = ops::make_operation(ops::operation::add, {x, y});
  const ops::node_ref outer = ops::make_operation(ops::operation::multiply, {y, inner});
  const auto map = parallel::axis_map::identity({3, 4}).permute_dims({1, 0}).narrow(0, 1, 2);
  int operations = 0;
  for (const auto& [root, shape] :
       {std::pair(outer, dims{3, 4}), std::pair(ops::make_view(outer, map), dims{2, 3})}) {
    for (const auto& node : ops::post_order(root)) {
      EXPECT_EQ(node->shape, shape);
      if (std::holds_alternative<detail::operation_node>(node->content)) ++operations;
      else EXPECT_TRUE(std::holds_alternative<detail::tensor_leaf>(node->content));
    }
    EXPECT_TRUE(std::holds_alternative<detail::operation_node>(root->content));
  }
  EXPECT_EQ(operations, 4);
}

// fold.1, fold.2
TEST(ReductionTree, MergesNeighboursInAnyOrderOfArrival) {
  std::mt19937 random(1);
  for (index_t leaves = 1; leaves <= 40; ++leaves) {
    std::vector<std::string> level;
    std::vector<index_t> order;
    for (index_t leaf = 0; leaf < leaves; ++leaf) {
      level.push_back(std::to_string(leaf));
      order.push_back(leaf);
    }
    while (level.size() > 1) {
      std::vector<std::string> next;
      for (std::size_t i = 0; i + 1 < level.size(); i += 2)
        next.push_back("(" + level[i] + " " + level[i + 1] + ")");
      if (level.size() % 2 == 1) next.push_back(level.back());
      level = next;
    }
    for (int round = 0; round < 5; ++round) {
      std::shuffle(order.begin(), order.end(), random);
      parallel::reduction_tree tree(leaves);
      std::map<const std::byte*, std::string> texts;
      for (std::size_t i = 0; i < order.size(); ++i) {
        const storage partial = storage::allocate(1);
        texts[partial.data()] = std::to_string(order[i]);
        const storage root =
            tree.insert(0, order[i], partial, [&](const storage& into, const storage& from) {
              texts[into.data()] = "(" + texts[into.data()] + " " + texts[from.data()] + ")";
            });
        ASSERT_EQ(!!root, i + 1 == order.size());
        if (root) {
          ASSERT_EQ(texts[root.data()], level[0]);
        }
      }
    }
  }
}

// fold.3
TEST(ReductionTree, HoldsFewPartialsOfLeavesThatComeInOrder) {
  for (const index_t leaves : {1, 2, 37, 1000, 1024}) {
    memory_pool pool;
    parallel::reduction_tree tree(leaves);
    for (index_t leaf = 0; leaf < leaves; ++leaf) {
      tree.insert(0, leaf, storage::allocate(1, &pool), [](const auto&, const auto&) {});
      ASSERT_LE(pool.statistics().live_blocks,
                static_cast<std::uint64_t>(std::bit_width(static_cast<std::uint64_t>(leaves))));
    }
  }
}

TEST(Expr, StepsBeyondEveryLengthLeaveOneElement) {
  constexpr index_t least = std::numeric_limits<index_t>::min();
  constexpr index_t most = std::numeric_limits<index_t>::max();
  const tensor x = tensor::of({1.0f, 2.0f, 3.0f, 4.0f});
  for (const index_t step : {least, least + 1, -most / 2, most / 2, most}) {
    const auto picked = [&](const expr& source) {
      return eval(source.index({slice{.step = step}}).index({slice{.step = step}}));
    };
    const float wanted = step < 0 ? 4.0f : 1.0f;
    EXPECT_TRUE(equal_bits(picked(x), tensor::of({wanted}))) << step;
    EXPECT_TRUE(equal_bits(picked(arange(1, 5, 1, dtype::float32)), tensor::of({wanted}))) << step;
    EXPECT_TRUE(equal_bits(picked(expr(x).flip({0}).index({slice{.step = 3}})),
                           tensor::of({step < 0 ? 1.0f : 4.0f})))
        << step;
  }
}

TEST(Expr, IndexDropsAxesBeforeItAddsOthers) {
  const tensor full = tensor::zeros(dims::filled(rank_max, 1), dtype::float32);
  EXPECT_EQ(expr(full).index({newaxis, 0}).shape(), full.shape());
  EXPECT_THROW(expr(full).index({newaxis, newaxis, 0}), error);
  EXPECT_THROW(expr(full).index({std::uint64_t{1} << 63}), error);
}

// ---- against NumPy -----------------------------------------------------------------------------

void write_npy(const std::string& path, const tensor& values, const char* code) {
  std::string header = "{'descr': '" + std::string(code) +
                       "', 'fortran_order': False, 'shape': " + to_string(values.shape()) + ", }";
  header.resize((header.size() + 11 + 63) / 64 * 64 - 11, ' ');
  header += '\n';
  std::ofstream out(path, std::ios::binary);
  out.write("\x93NUMPY\x01\x00", 8);
  const auto bytes = static_cast<std::uint16_t>(header.size());
  out.write(reinterpret_cast<const char*>(&bytes), 2);
  out << header;
  const tensor dense = values.contiguous();
  out.write(reinterpret_cast<const char*>(dense.data()),
            static_cast<std::streamsize>(dense.size_bytes()));
  ASSERT_TRUE(out.good());
}

TEST(ExprNumpy, AgreesOnViewsFunctionsAndFolds) {
  char folder[] = "/tmp/shale-expr-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = folder;
  const tensor x = fractions({6, 50, 7}), y = fractions({50, 1}, 9);
  write_npy(path + "/x.npy", x, "<f4");
  write_npy(path + "/y.npy", y, "<f4");
  const expr ex = x, ey = y;
  const std::vector<std::pair<expr, const char*>> cases{
      {ex.index({slice{.start = 4, .step = -2}, ellipsis, newaxis, slice{1, 6, 2}}) * 2.0f,
       "x[4::-2, ..., None, 1:6:2] * np.float32(2)"},
      {exp(ex) + log(ey) * sin(ex) - cos(ey), "np.exp(x) + np.log(y) * np.sin(x) - np.cos(y)"},
      {atan2(ex, ey) + floor(ex * 10.0f) % 3.0f,
       "np.arctan2(x, y) + np.floor(x * np.float32(10)) % np.float32(3)"},
      {mean(ex, dims{0, 2}) - min(ex, dims{0, 2}), "x.mean((0, 2)) - x.min((0, 2))"},
      {var(ex, dims{1}, keepdims::yes, 1), "x.var(1, keepdims=True, ddof=1)"},
      {stddev(ex, dims{1}) / max(ex), "x.std(1) / x.max()"},
      {where(ex > ey, ex, ey), "np.where(x > y, x, y)"},
      {concat(std::vector<expr>{ex, ex.flip({1})}, 1), "np.concatenate([x, x[:, ::-1]], 1)"},
      {tile(ex, {2, 1, 1, 3}), "np.tile(x, (2, 1, 1, 3))"},
      {repeat(ex, 3, 2).swapaxes(0, 2), "np.repeat(x, 3, 2).swapaxes(0, 2)"},
      {astype(ex * 1000.0f, dtype::int32) + arange(7),
       "((x * np.float32(1000)).astype(np.int32) + np.arange(7)).astype(np.int64)"},
  };
  std::ofstream script(path + "/check.py");
  script << "import numpy as np\nx = np.load('" << path << "/x.npy')\ny = np.load('" << path
         << "/y.npy')\nbad = []\n";
  for (std::size_t k = 0; k < cases.size(); ++k) {
    const tensor got = eval(cases[k].first);
    const std::string file = path + "/" + std::to_string(k) + ".npy";
    write_npy(file, got, got.dtype() == dtype::int64 ? "<i8" : "<f4");
    script << "a, b = np.load('" << file << "'), np.asarray(" << cases[k].second << ")\n"
           << "if a.shape != b.shape or a.dtype != b.dtype or not np.allclose(a, b, 1e-5, 1e-6): "
              "bad.append(("
           << k << ", a.shape, b.shape, a.dtype, b.dtype))\n";
  }
  script << "assert not bad, bad\n";
  script.close();
  EXPECT_EQ(std::system(("/usr/bin/python3 " + path + "/check.py").c_str()), 0);
  std::filesystem::remove_all(path);
}

TEST(Expr, ResultsOfNoElementsAreDeliveredInSmallParts) {
  memory_pool pool;
  executor on({.threads = 1, .pool = &pool});
  const executor::scope within(on);
  constexpr index_t columns = 1'000'003;
  const tensor sums = eval(sum(tensor::zeros({0, columns}, dtype::float32), dims{0}));
  ASSERT_EQ(sums.shape(), dims{columns});
  const auto numbers = test::elements_of<float>(sums);
  EXPECT_EQ(std::count(numbers.begin(), numbers.end(), 0.0F), columns);
  // Two tensors of results, of which one is copied into the other, and little beside.
  EXPECT_LT(pool.statistics().peak_live_bytes, 3 * sums.size_bytes());
}

}  // namespace
}  // namespace shale
