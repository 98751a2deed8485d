// Tests matrix products inside expressions. The oracle sums products index by index.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <vector>

#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/linalg.hpp"
#include "support/bounded.hpp"
#include "support/failures.hpp"
#include "support/little_memory.hpp"
#include "support/random_tensors.hpp"

namespace shale {
namespace {

using test::as_list;
using test::code_of;
using test::elements_of;
using test::index_list;
using test::random_choices;
using test::random_tensor;

// Row-major elements and their shape.
struct grid {
  index_list shape;
  std::vector<double> elements;
};

grid grid_of(const tensor& values) {
  return {as_list(values.shape()), elements_of<double>(values)};
}

// The product a @ b of matrices or stacks of matrices, element by element. Axes in front are
// broadcast.
grid product_of(const grid& a, const grid& b) {
  const auto axis = [](const grid& operand, std::size_t from_the_back) {
    return operand.shape.size() < from_the_back
               ? 1
               : operand.shape[operand.shape.size() - from_the_back];
  };
  const index_t m = axis(a, 2), k = axis(a, 1), n = axis(b, 1);
  grid result;
  for (std::size_t back = std::max(a.shape.size(), b.shape.size()); back > 2; --back)
    result.shape.push_back(std::max(axis(a, back), axis(b, back)));
  index_t stacks = 1;
  for (const index_t extent : result.shape) stacks *= extent;
  // The number of the operand's matrix that matrix `number` of the result is computed from.
  const auto matrix = [&](const grid& operand, index_t number) {
    index_t operand_matrix = 0, before = 1;
    for (std::size_t back = 3; back <= result.shape.size() + 2; ++back) {
      const index_t extent = result.shape[result.shape.size() + 2 - back];
      if (axis(operand, back) > 1) operand_matrix += number % extent * before;
      before *= axis(operand, back);
      number /= extent;
    }
    return operand_matrix;
  };
  for (index_t stack = 0; stack < stacks; ++stack)
    for (index_t row = 0; row < m; ++row)
      for (index_t column = 0; column < n; ++column) {
        double sum = 0;
        for (index_t inner = 0; inner < k; ++inner)
          sum += a.elements[static_cast<std::size_t>((matrix(a, stack) * m + row) * k + inner)] *
                 b.elements[static_cast<std::size_t>((matrix(b, stack) * k + inner) * n + column)];
        result.elements.push_back(sum);
      }
  result.shape.insert(result.shape.end(), {m, n});
  return result;
}

// Small whole numbers, whose sums of products are exact in any order.
tensor numbers(const dims& shape, std::uint64_t seed) {
  random_choices choose(seed);
  return random_tensor<double>(choose, shape);
}

TEST(ExprProducts, AreSumsOfProducts) {
  const std::vector<std::pair<dims, dims>> shapes{
      {{2, 3}, {3, 4}},       {{1, 5}, {5, 1}},       {{7, 2, 3}, {3, 4}},
      {{2, 3}, {7, 3, 4}},    {{7, 2, 3}, {7, 3, 4}}, {{6, 1, 2, 3}, {5, 3, 4}},
      {{40, 300}, {300, 50}}, {{0, 3}, {3, 2}},       {{2, 0}, {0, 3}},
  };
  for (const auto& [left, right] : shapes) {
    SCOPED_TRACE(to_string(left) + " by " + to_string(right));
    const tensor a = numbers(left, 1), b = numbers(right, 2);
    const grid wanted = product_of(grid_of(a), grid_of(b));
    const expr product = matmul(expr(a), expr(b));
    EXPECT_EQ(as_list(product.shape()), wanted.shape);
    EXPECT_EQ(elements_of<double>(eval(product)), wanted.elements);
  }
}

// Their operands have no memory, so there is no address that strides may be added to.
TEST(ExprProducts, OverAnEmptyAxisAreZeros) {
  for (const dtype type : {dtype::float32, dtype::complex128, dtype::int16, dtype::boolean})
    for (const dims& batch : {dims{}, dims{3}, dims{2, 3}})
      for (const index_t extent : {2, 600}) {  // one tile, and several
        dims rows = batch, columns = batch, shape = batch;
        for (const index_t each : {extent, index_t{0}}) rows.push_back(each);
        for (const index_t each : {index_t{0}, extent}) columns.push_back(each);
        for (int i = 0; i < 2; ++i) shape.push_back(extent);
        const tensor product =
            eval(matmul(expr(tensor::zeros(rows, type)), expr(tensor::zeros(columns, type))));
        EXPECT_TRUE(equal_bits(product, tensor::zeros(shape, type))) << to_string(rows);
      }
}

TEST(ExprProducts, OfVectorsDropTheirAxis) {
  const tensor v = numbers({3}, 1), w = numbers({3}, 2), a = numbers({2, 3}, 3);
  const auto ev = elements_of<double>(v), ew = elements_of<double>(w), ea = elements_of<double>(a);
  const double inner = std::inner_product(ev.begin(), ev.end(), ew.begin(), 0.0);
  EXPECT_EQ(elements_of<double>(eval(matmul(expr(v), expr(w)))), std::vector<double>{inner});
  EXPECT_EQ(matmul(expr(v), expr(w)).rank(), 0);
  const std::vector<double> rows{std::inner_product(ev.begin(), ev.end(), ea.begin(), 0.0),
                                 std::inner_product(ev.begin(), ev.end(), ea.begin() + 3, 0.0)};
  EXPECT_EQ(elements_of<double>(eval(matmul(expr(a), expr(v)))), rows);
  EXPECT_EQ(elements_of<double>(eval(matmul(expr(v), expr(a).swapaxes(0, 1)))), rows);
}

TEST(ExprProducts, AreOperandsAndResultsOfOtherOperations) {
  const tensor a = numbers({6, 5}, 1), b = numbers({6, 5}, 2);
  grid left = grid_of(a), right = grid_of(eval(expr(b).swapaxes(0, 1)));
  for (double& value : left.elements) value = value * 2 + 1;
  const grid gram = product_of(left, right);
  const grid twice = product_of(gram, gram);
  const expr x = matmul(expr(a) * 2 + 1, expr(b).swapaxes(0, 1));
  EXPECT_EQ(elements_of<double>(eval(matmul(x, x))), twice.elements);
  EXPECT_EQ(eval(sum(x)).item().as<double>(),
            std::accumulate(gram.elements.begin(), gram.elements.end(), 0.0));
  std::vector<double> part;
  for (std::size_t row = 1; row < 6; row += 2)
    for (std::size_t column = 6; column-- > 0;) part.push_back(gram.elements[row * 6 + column] - 7);
  EXPECT_EQ(elements_of<double>(eval(x.sliced(0, {.start = 1, .step = 2}).flip({1}) - 7)), part);
  // The levels of stages: a product of a reduction's result, and a reduction of that and another
  // product.
  const expr means = mean(x, dims{0}, keepdims::yes);
  EXPECT_EQ(eval(max(matmul(means, x) - matmul(means, x))).item().as<double>(), 0);
}

TEST(ExprProducts, PromoteAndRoundAsMatmulDoes) {
  random_choices choose(5);
  const tensor f = random_tensor<float>(choose, {4, 3}),
               i = random_tensor<std::int16_t>(choose, {3, 2});
  const expr product = matmul(expr(f), expr(i));
  EXPECT_EQ(product.dtype(), promote(dtype::float32, dtype::int16));
  EXPECT_TRUE(equal_bits(eval(product), matmul(f, i)));
  const tensor h = eval(astype(expr(f), dtype::float16));
  EXPECT_EQ(matmul(expr(h), expr(h).swapaxes(0, 1)).dtype(), dtype::float16);
  EXPECT_TRUE(
      equal_bits(eval(matmul(expr(h), expr(h).swapaxes(0, 1))), matmul(h, h.swapaxes(0, 1))));
}

TEST(ExprProducts, AreRefusedWhenTheyAreMade) {
  const expr a = numbers({2, 3}, 1);
  for (const auto& make : std::vector<std::function<void()>>{
           [&] { matmul(a, a); }, [&] { matmul(a, expr(2)); }, [&] { matmul(expr(2), a); },
           [&] { matmul(a, astype(a.swapaxes(0, 1), dtype::float8_e5m2)); },
           [&] {
             matmul(a.broadcast_to({4, 2, 3}), full({5, 3, 1}, 1.0));
           }})
    EXPECT_EQ(code_of(make), errc::invalid_argument);
}

// graph.3
TEST(ExprProducts, AreCountedInPlans) {
  const tensor a = numbers({30, 40}, 1), b = numbers({40, 20}, 2);
  const expr product = matmul(expr(a), expr(b) + 1);
  const expr value = (product - mean(product)) * 2;
  executor on({.threads = 2});
  const executor::scope within(on);
  const auto planned = explain(value);
  eval(value);
  EXPECT_EQ(planned.passes, 4);  // the sum, the product, its mean, the rest
  EXPECT_EQ(on.statistics().passes, 4u);
  EXPECT_EQ(on.statistics().bytes_read, planned.bytes_read) << planned.text;
  EXPECT_EQ(on.statistics().bytes_written, planned.bytes_written) << planned.text;
  EXPECT_NE(planned.text.find("multiplies (30, 40) by (40, 20)"), std::string::npos);
}

// The operands of products are computed shortly before the product, and freed after it.
TEST(ExprProducts, AreHeldUntilTheirReadersAreComputed) {
  constexpr index_t side = 256;
  constexpr std::size_t matrix = side * side * sizeof(double);
  memory_pool pool;
  executor on({.threads = 2, .pool = &pool});
  const executor::scope within(on);
  const tensor ones = eval(full({side, side}, 1.0));
  const std::size_t before = pool.statistics().live_bytes;

  // Each factor is computed first.
  expr chain = expr(ones) / side;
  for (int times = 0; times < 8; ++times) chain = matmul(chain, (expr(ones) + times) / side);
  EXPECT_EQ(explain(chain).staged_bytes_max, 3 * matrix);
  pool.reset_peak();
  const tensor product = eval(chain);
  // 1/n, times the sum of n times (1 + k)/n, for k below 8.
  EXPECT_NEAR(product.at({3, 200}).as<double>(), 40320.0 / side, 1e-9);
  constexpr std::size_t scratch = std::size_t{4} << 20;
  EXPECT_LE(pool.statistics().peak_live_bytes - before, 4 * matrix + scratch);

  // Reductions over one input share a pass, even if their results are read late.
  const expr scaled = matmul(expr(ones) / sum(ones), ones) / max(ones);
  EXPECT_EQ(explain(scaled).passes, 4);
  EXPECT_EQ(explain(scaled).staged_bytes_max, 2 * matrix + sizeof(double));
  EXPECT_EQ(explain(expr(ones) + 1).staged_bytes_max, 0u);

  // Products of narrow floats are computed in float32 first.
  const tensor column = eval(full({2048, 2}, 1.0, dtype::float16));
  const expr wide = max(matmul(column, expr(column).swapaxes(0, 1)));
  constexpr std::size_t held = std::size_t{2048} * 2048 * (sizeof(float) + 2);
  EXPECT_EQ(explain(wide).staged_bytes_max, held);
  const std::size_t before_wide = pool.statistics().live_bytes;
  pool.reset_peak();
  EXPECT_EQ(eval(wide).item().as<double>(), 2);
  constexpr std::size_t unsure = std::size_t{5} << 20;  // of peaks
  EXPECT_GE(pool.statistics().peak_live_bytes - before_wide + unsure, held);
  EXPECT_LE(pool.statistics().peak_live_bytes - before_wide, held + unsure + scratch);
}

// graph.4
// buffer.1: without it, OpenBLAS would ask the system for buffers for ever.
TEST(ExprProducts, EndWithAnErrorWhereBlasHasNoAddressSpace) {
  if (test::instrumented) GTEST_SKIP() << "sanitizers take all address space";
  for (const int threads : {1, 3})
    test::expect_to_end([&] {
      executor on({.threads = threads, .memory_bytes = std::size_t{8} << 20});
      const executor::scope within(on);
      const tensor a = tensor::zeros({600, 600}, dtype::float64);
      {
        const test::little_memory limit(rlim_t{90} << 20);
        EXPECT_EQ(test::code_of([&] { matmul(a, a); }), errc::out_of_memory);
      }
      {
        const test::little_memory limit(rlim_t{250} << 20);  // one buffer at a time
        EXPECT_EQ(test::code_of([&] { matmul(a, a); }), errc{});
      }
      EXPECT_EQ(test::code_of([&] { matmul(a, a); }), errc{});
    });
}

TEST(ExprProducts, LongChainsNeedNoStack) {
  const expr turn = tensor::of<double>({0, -1, 1, 0}).view({2, 2});
  expr turned = turn;
  for (int times = 1; times < 20'001; ++times) turned = matmul(turn, turned);
  EXPECT_EQ(elements_of<double>(eval(turned)), (std::vector<double>{0, -1, 1, 0}));
  expr never = turn;
  for (int times = 0; times < 200'000; ++times) never = matmul(never, turn);
}

}  // namespace
}  // namespace shale
