// Tests evaluations of small expressions, which run passes that the thread keeps. The oracle is the
// general evaluation of the same expression: an executor that reports progress takes it always.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "ops/evaluation/expression_form.hpp"
#include "ops/evaluation/kept_pass.hpp"
#include "ops/evaluation/small_evaluation.hpp"
#include "ops/graph/node_access.hpp"
#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/ops.hpp"
#include "support/failures.hpp"
#include "support/general_way.hpp"
#include "support/instrumented.hpp"
#include "support/random_tensors.hpp"
#include "support/run_on.hpp"

namespace shale {
namespace {

using test::code_of;
using test::random_choices;
using test::sharing;

class SmallEvaluation : public testing::Test {
 protected:
  // Evaluates an expression into a copy of `out` in the general way, then into `out`.
  void expect_same_bits(const tensor& out, const expr& value) {
    const tensor wanted = out.clone();
    test::run_on(general_, [&] { eval_into(wanted, value); });
    test::run_on(plain_, [&] { eval_into(out, value); });
    ASSERT_TRUE(equal_bits(out, wanted)) << to_string(out.shape()) << to_string(out.strides());
  }

  test::silent_sink sink_;
  executor general_{{.threads = 2, .progress = &sink_}};
  executor plain_{{.threads = 2}};
};

// An expression of one of a few forms, with operands of the given layouts and numbers of its own.
expr made_of(int form, const expr& a, const expr& b, const expr& c, double number) {
  switch (form) {
    case 0:
      return a + b;
    case 1:
      return a * number + b * (number + 1);
    case 2:
      return sqrt(a * a + b * b) - c;
    case 3: {
      const expr shared = a - number * b;
      return shared * shared + c;
    }
    case 4:
      return where(a < b, exp(c / 100), number);
    case 5:
      return astype(astype(a, dtype::int16) % 7, dtype::float32) / (b + 1);
    case 6:
      return sum(a * b - c);
    case 7:
      return var(a + number);
    case 8:
      return max(where(a < b, a, c), {}, keepdims::yes);
    case 9:
      return mean(astype(a, dtype::float64) * b);
    case 10:
      return sum(a * b - c, {0});
    case 11:
      return var(a + number, {-1}, keepdims::yes);
    case 12:
      return argmax(a - b, a.rank() - 1);
    case 13:
      return mean(b, {a.rank() / 2});
    default:
      return min(where(a < b, a, c), {0, -1});
  }
}

TEST_F(SmallEvaluation, HasTheBitsOfTheGeneralOne) {
  for (std::uint64_t seed = 0; seed < test::cases(1200); ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const index_t longest = choose(0, 9) == 0 ? 40 : 6;
    const dims shape =
        test::random_shape(choose, {.axes_max = 3, .longest = longest, .may_be_empty = false});
    // The last forms fold some axes.
    const int form = static_cast<int>(choose(0, shape.size() > 1 ? 14 : 9));
    // The same layouts several times, so that the first call's pass serves the others.
    const auto of_a = test::random_layout(choose, shape), of_b = test::random_layout(choose, shape),
               of_c = test::random_layout(choose, shape);
    const auto of_out = test::random_layout(choose, shape, sharing::distinct);
    for (int round = 0; round < 3; ++round) {
      const tensor a = test::random_tensor<float>(choose, of_a),
                   b = test::random_tensor<float>(choose, of_b),
                   c = test::random_tensor<float>(choose, of_c);
      const expr value = made_of(form, a, b, c, static_cast<double>(choose(1, 1000)) / 7);
      const bool fits = value.shape() == shape && value.dtype() == dtype::float32;
      expect_same_bits(fits ? test::random_tensor<float>(choose, of_out)
                            : tensor::zeros(value.shape(), value.dtype()),
                       value);
      if (HasFatalFailure()) return;
    }
  }
}

// small.1: a reduction of several tiles. Elements that lie far apart are cut into smaller tiles.
TEST_F(SmallEvaluation, FoldsTilesInTheOrderOfTheGeneralOne) {
  const auto expect_same_folds = [&](const tensor& values) {
    const std::vector<expr> all{sum(values), mean(sqrt(expr(values))), var(values),
                                sum(exp(expr(values) / 30) * 2)};
    for (const expr& value : all) expect_same_bits(tensor::zeros({}, value.dtype()), value);
    for (index_t axis = 0; values.rank() > 1 && axis < values.rank(); ++axis)
      for (const expr& value : {sum(values, {axis}), var(expr(values) * 2, {axis})})
        expect_same_bits(tensor::zeros(value.shape(), value.dtype()), value);
  };
  for (const index_t size : {8191, 8192, 8193, 16384, 20000, 24577, 30000, 32768, 32769, 70000}) {
    SCOPED_TRACE(size);
    random_choices choose(static_cast<std::uint64_t>(size));
    const tensor values = tensor::empty({size}, dtype::float64);
    for (double& x : values.elements<double>()) x = static_cast<double>(choose(1, 1000)) / 37;
    expect_same_folds(values);
  }
  for (const index_t rows : {65, 300, 700}) {
    SCOPED_TRACE(rows);
    random_choices choose(static_cast<std::uint64_t>(rows));
    const tensor values = tensor::zeros({rows, 8192}, dtype::float64).narrow(1, 3, 2);
    for (index_t row = 0; row < rows; ++row)
      for (index_t column = 0; column < 2; ++column)
        values.set({row, column}, static_cast<double>(choose(1, 1000)) / 37);
    expect_same_folds(values);
    expect_same_folds(values.permute_dims({1, 0}));
    expect_same_folds(values.select(1, 0));
  }
}

// A thread keeps many passes, and a sum of a column has a tile for every 64 elements.
TEST_F(SmallEvaluation, KeepsFewTilesOfAPass) {
  const tensor out = tensor::zeros({}, dtype::float64);
  const auto made = [&](const tensor& values) {
    const expr value = sum(values);
    const ops::expression_form form(out, ops::node_of(value));
    auto kept = ops::make_kept_pass(form, plain_);
    EXPECT_NE(kept, nullptr);
    return kept;
  };
  const auto many = made(tensor::zeros({1000, 8192}, dtype::float64).select(1, 3));
  ASSERT_GT(many->over.tile_count(), ops::kept_pass::tiles_kept_max);
  EXPECT_EQ(many->tiles.capacity(), 0u);
  EXPECT_EQ(made(tensor::zeros({100}, dtype::float64))->tiles.size(), 1u);
}

// form.1
TEST_F(SmallEvaluation, FormsThatDifferHavePassesOfTheirOwn) {
  const tensor a = tensor::full({6}, 3, dtype::float32), b = tensor::full({6}, 5, dtype::float32);
  const tensor out = tensor::zeros({6}, dtype::float32);
  const tensor wide = tensor::zeros({6}, dtype::float64);
  const expr shared = expr(a) + b;
  const std::vector<expr> values{expr(a) - a,
                                 expr(a) - b,
                                 expr(b) - a,
                                 shared * shared,
                                 shared * (expr(a) + b),
                                 shared * (expr(b) - a),
                                 shared * (expr(a) - b),
                                 expr(a) * 2 + expr(a) * 2,
                                 expr(a) * 2 + expr(a) * 3,
                                 expr(a) * 3 + expr(b) * 3,
                                 astype(expr(a), dtype::int8) + 1.5,
                                 astype(expr(a), dtype::int16) + 1.5,
                                 full({6}, 0.0),
                                 full({6}, 7.0),
                                 expr(a)};
  for (int round = 0; round < 3; ++round)
    for (const expr& value : values) {
      expect_same_bits(out, value);
      expect_same_bits(wide, value);
    }
}

// keep.1, keep.2
TEST_F(SmallEvaluation, ManyFormsReplaceEachOther) {
  const tensor a = tensor::full({500}, 3, dtype::float32);
  const tensor out = tensor::zeros({500}, dtype::float32);
  for (int round = 0; round < 3; ++round)
    for (index_t length = 1; length < 300; ++length)
      expect_same_bits(out.narrow(0, length, length / 2 + 1),
                       expr(a.narrow(0, 1, length / 2 + 1)) * static_cast<double>(length));
}

// keep.1: an input that is the output in one call is another tensor in the next.
TEST_F(SmallEvaluation, InPlaceCallsServeOthersOfTheirForm) {
  const executor::scope within(plain_);
  for (const bool in_place_first : {true, false}) {
    const index_t size = in_place_first ? 11 : 12;  // forms of their own
    const tensor x = tensor::full({size}, 3, dtype::float32);
    const tensor y = tensor::full({size}, 50, dtype::float32);
    const tensor z = tensor::full({size}, 7, dtype::float32);
    if (in_place_first) eval_into(x, expr(x) + z);
    eval_into(y, expr(x) + z);
    EXPECT_EQ(y.at({size - 1}), scalar(in_place_first ? 17.0 : 10.0));
    eval_into(x, expr(z) + x);
    eval_into(z, expr(x) + z);
    EXPECT_EQ(x.at({0}), scalar(in_place_first ? 17.0 : 10.0));
    EXPECT_EQ(z.at({0}), scalar(in_place_first ? 24.0 : 17.0));
  }
}

// The oracle computes from a copy of all elements.
TEST_F(SmallEvaluation, ReadsInputsAsTheyWereBefore) {
  for (std::uint64_t seed = 0; seed < test::cases(300); ++seed) {
    random_choices choose(seed);
    std::vector<std::int32_t> before(40);
    for (auto& x : before) x = static_cast<std::int32_t>(choose(0, 1000));
    const index_t from = choose(0, 10), to = choose(0, 10), step = choose(1, 3);
    for (int round = 0; round < 2; ++round) {
      const tensor whole = tensor::of<std::int32_t>(before, {40});
      const tensor in = whole.narrow(0, from, 30).sliced(0, {.step = step});
      const tensor out = whole.narrow(0, to, in.size());
      test::run_on(plain_, [&] { eval_into(out, expr(in) + out); });
      auto wanted = before;
      for (std::size_t i = 0; i < static_cast<std::size_t>(in.size()); ++i) {
        const std::size_t at = static_cast<std::size_t>(to) + i;
        const std::size_t source =
            static_cast<std::size_t>(from) + i * static_cast<std::size_t>(step);
        wanted[at] = before[source] + before[at];
      }
      ASSERT_EQ(test::elements_of<std::int32_t>(whole), wanted) << seed;
    }
  }
}

// Whether an expression is evaluated so.
bool is_small(const tensor& out, const expr& value) {
  ops::expression_form form(out, ops::node_of(value));
  ops::small_evaluation small(out, ops::node_of(value), executor::current());
  EXPECT_TRUE(form.exists() || !small.applies());
  if (!small.applies()) return false;
  EXPECT_NE(ops::make_kept_pass(form, executor::current()), nullptr);
  return true;
}

TEST_F(SmallEvaluation, TakesFewElementsInMemory) {
  const tensor a = tensor::full({100}, 3, dtype::float32),
               out = tensor::zeros({100}, dtype::float32);
  const tensor one = tensor::zeros({}, dtype::float32), wide = tensor::zeros({}, dtype::float64);
  EXPECT_TRUE(is_small(out, expr(a) + 1));
  EXPECT_TRUE(is_small(out, full({100}, 1.0f)));
  EXPECT_TRUE(is_small(one, sum(a)));
  EXPECT_TRUE(is_small(one.view({1}), sum(a, {}, keepdims::yes)));
  EXPECT_FALSE(is_small(wide, sum(a)));
  const expr rows = expr(a).reshape({10, 10});
  const tensor ten = tensor::zeros({10}, dtype::float32);
  EXPECT_TRUE(is_small(ten, sum(rows, {0})));
  EXPECT_TRUE(is_small(ten, sum(rows, {1})));
  EXPECT_TRUE(is_small(ten.view({10, 1}), var(rows * 2, {1}, keepdims::yes)));
  EXPECT_FALSE(
      is_small(tensor::zeros({20}, dtype::float32).sliced(0, {.step = 2}), sum(rows, {0})));
  EXPECT_FALSE(is_small(out, expr(a) - mean(a)));
  EXPECT_FALSE(is_small(out, tile(a.narrow(0, 0, 50), {2})));
  EXPECT_FALSE(is_small(out, arange(0, 100, 1, dtype::float32)));
  EXPECT_FALSE(is_small(tensor::zeros({70000}, dtype::int8), full({70000}, 1)));
  EXPECT_FALSE(is_small(tensor::zeros({0}, dtype::int8), full({0}, 1)));
  const executor::scope within(general_);
  EXPECT_FALSE(is_small(out, expr(a) + 1));
}

TEST_F(SmallEvaluation, CountsWhatTheGeneralOneCounts) {
  const tensor a = tensor::full({100}, 3, dtype::float32);
  const tensor out = tensor::zeros({60}, dtype::float32);
  const std::vector<expr> values{expr(a.narrow(0, 0, 60)) + a.narrow(0, 40, 60),
                                 expr(a.narrow(0, 0, 60)) + out, full({60}, 2.0),
                                 expr(a.narrow(0, 7, 1)).broadcast_to({60})};
  for (const expr& value : values)
    for (int round = 0; round < 2; ++round) {
      const auto version = out.storage().version();
      test::expect_same_counts(plain_, general_, [&] { eval_into(out, value); });
      EXPECT_EQ(out.storage().version(), version + 2);
    }
}

TEST_F(SmallEvaluation, RefusesOutputsAsTheGeneralOne) {
  const tensor a = tensor::full({4}, 3, dtype::float32);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(code_of([&] { eval_into(a.as_read_only(), expr(a) + 1); }), errc::access_denied);
    const tensor one = tensor::zeros({1}, dtype::float32);
    EXPECT_EQ(code_of([&] { eval_into(one.broadcast_to({4}), expr(a) + 1); }),
              errc::invalid_argument);
    EXPECT_EQ(code_of([&] {
                eval_into(a.as_strided({2, 3}, {1, 1}, 0), full({2, 3}, 1));
              }),
              errc::invalid_argument);
    EXPECT_EQ(code_of([&] { eval_into(a, expr(a).narrow(0, 0, 3)); }), errc::invalid_argument);
    executor stopped;
    stopped.cancel();
    EXPECT_EQ(code_of([&] { test::run_on(stopped, [&] { eval_into(a, expr(a) + 1); }); }),
              errc::cancelled);
  }
  EXPECT_TRUE(equal_bits(a, tensor::full({4}, 3, dtype::float32)));
}

TEST_F(SmallEvaluation, OfManyThreadsAreIndependent) {
  std::vector<std::thread> threads;
  const tensor shared = tensor::full({50}, 2, dtype::float64);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const tensor out = tensor::zeros({50}, dtype::float64);
      for (int round = 0; round < 300; ++round) {
        eval_into(out, expr(shared) * t + round);
        EXPECT_EQ(out.at({49}), scalar(2.0 * t + round));
        EXPECT_EQ(eval(sum(expr(shared) + t)).item(), scalar(50.0 * (2 + t)));
      }
    });
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace shale
