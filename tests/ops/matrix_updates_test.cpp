// Tests products that are added to tensors: over random layouts, dtypes and weights, and with
// operands that overlap the output. The oracle copies all elements first and sums index by index.
#include "shale/matrix_updates.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "shale/creation.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"
#include "shale/ops.hpp"
#include "support/failures.hpp"
#include "support/random_tensors.hpp"

namespace shale {
namespace {

using test::code_of;
using test::elements_of;
using test::random_choices;
using test::random_tensor;
using test::text_of;

/// beta * before + alpha * the sums over `batch` and `k` of a * b. Operands are row-major.
template <class T>
std::vector<T> updated(const std::vector<T>& before, const std::vector<T>& a,
                       const std::vector<T>& b, index_t batch, index_t m, index_t k, index_t n,
                       T beta, T alpha) {
  std::vector<T> result;
  for (index_t row = 0; row < m; ++row)
    for (index_t column = 0; column < n; ++column) {
      T sum(0);
      for (index_t one = 0; one < batch; ++one)
        for (index_t inner = 0; inner < k; ++inner)
          sum =
              static_cast<T>(sum + a[static_cast<std::size_t>((one * m + row) * k + inner)] *
                                       b[static_cast<std::size_t>((one * k + inner) * n + column)]);
      const T old = before[static_cast<std::size_t>(row * n + column)];
      result.push_back(static_cast<T>(beta * old + alpha * sum));
    }
  return result;
}

template <class T>
class MatrixUpdates : public testing::Test {};
using element_list = testing::Types<std::int16_t, std::uint64_t, double, std::complex<double>>;
TYPED_TEST_SUITE(MatrixUpdates, element_list);

TYPED_TEST(MatrixUpdates, AddWeightedProducts) {
  using T = TypeParam;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const index_t m = choose(0, 7), k = choose(0, 7), n = choose(0, 7), batch = choose(0, 3);
    const int beta = static_cast<int>(choose(0, 3)), alpha = static_cast<int>(choose(0, 3));
    const update_weights weights{beta, alpha};
    const auto target = [&](const dims& shape) {
      return random_tensor<T>(choose, shape, test::sharing::distinct);
    };
    const auto check = [&](const tensor& out, const tensor& a, const tensor& b, index_t batches,
                           index_t rows, index_t inner, index_t columns,
                           const std::function<void()>& call) {
      const auto wanted = updated<T>(elements_of<T>(out), elements_of<T>(a), elements_of<T>(b),
                                     batches, rows, inner, columns, T(beta), T(alpha));
      call();
      ASSERT_EQ(elements_of<T>(out), wanted);
    };
    const tensor a = random_tensor<T>(choose, dims{m, k}), b = random_tensor<T>(choose, dims{k, n});
    const tensor x = random_tensor<T>(choose, dims{k}), u = random_tensor<T>(choose, dims{m}),
                 v = random_tensor<T>(choose, dims{n});
    const tensor as = random_tensor<T>(choose, dims{batch, m, k}),
                 bs = random_tensor<T>(choose, dims{batch, k, n});
    const tensor matrix = target({m, n}), vector = target({m}), stack = target({batch, m, n});
    check(matrix, a, b, 1, m, k, n, [&] { addmm(matrix, a, b, weights); });
    check(vector, a, x, 1, m, k, 1, [&] { addmv(vector, a, x, weights); });
    check(matrix, u, v, 1, m, 1, n, [&] { addr(matrix, u, v, weights); });
    check(matrix, as, bs, batch, m, k, n, [&] { addbmm(matrix, as, bs, weights); });
    std::vector<T> wanted;
    for (index_t one = 0; one < batch; ++one) {
      const auto matrices =
          updated<T>(elements_of<T>(stack.select(0, one)), elements_of<T>(as.select(0, one)),
                     elements_of<T>(bs.select(0, one)), 1, m, k, n, T(beta), T(alpha));
      wanted.insert(wanted.end(), matrices.begin(), matrices.end());
    }
    baddbmm(stack, as, bs, weights);
    ASSERT_EQ(elements_of<T>(stack), wanted);
  }
}

TEST(MatrixUpdateOverlaps, OperandsCountAsTheyWereBefore) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    const tensor whole = random_tensor<double>(choose, dims{9, 9}, test::sharing::distinct);
    const auto part = [&](index_t rows, index_t columns) {
      return whole.narrow(0, choose(0, 9 - rows), rows).narrow(1, choose(0, 9 - columns), columns);
    };
    const tensor out = part(5, 4), a = part(5, 6), b = part(6, 4).flip({1});
    const auto wanted = updated<double>(elements_of<double>(out), elements_of<double>(a),
                                        elements_of<double>(b), 1, 5, 6, 4, 2, 3);
    addmm(out, a, b, {2, 3});
    ASSERT_EQ(elements_of<double>(out), wanted);

    // A square matrix times its own transpose, into itself.
    const tensor square = random_tensor<double>(choose, dims{5, 5}, test::sharing::distinct);
    const tensor turned = square.swapaxes(0, 1);
    const auto product = updated<double>(elements_of<double>(square), elements_of<double>(turned),
                                         elements_of<double>(square), 1, 5, 5, 5, 0, 1);
    addmm(square, turned, square, {.beta = 0});
    ASSERT_EQ(elements_of<double>(square), product);

    // Vectors that are a row and a column of the output, or the output itself.
    const tensor grid = random_tensor<double>(choose, dims{5, 5}, test::sharing::distinct);
    const tensor row = grid.select(0, 2), column = grid.select(1, 3);
    const auto outer = updated<double>(elements_of<double>(grid), elements_of<double>(column),
                                       elements_of<double>(row), 1, 5, 1, 5, 1, 1);
    addr(grid, column, row);
    ASSERT_EQ(elements_of<double>(grid), outer);
    const auto moved = updated<double>(elements_of<double>(column), elements_of<double>(grid),
                                       elements_of<double>(column), 1, 5, 5, 1, 1, 2);
    addmv(column, grid, column, {.alpha = 2});
    ASSERT_EQ(elements_of<double>(column), moved);
  }
}

TEST(MatrixUpdateRules, BetaOfZeroReadsNothing) {
  const tensor out = tensor::full({2, 2}, std::numeric_limits<double>::quiet_NaN(), dtype::float64);
  addmm(out, tensor::ones({2, 3}, dtype::float64), tensor::ones({3, 2}, dtype::float64),
        {.beta = 0, .alpha = 0.5});
  EXPECT_EQ(elements_of<double>(out), std::vector<double>(4, 1.5));
  addmm(out, tensor::full({2, 1}, std::nan(""), dtype::float64),
        tensor::ones({1, 2}, dtype::float64), {.alpha = 0});
  EXPECT_TRUE(std::isnan(out.at({1, 1}).as<double>()));
}

TEST(MatrixUpdateRules, HalfFloatsAreRoundedOnce) {
  // 2048 + 1 + 1 in float16 would stay 2048 if it were rounded after each sum.
  const tensor out = eval(full({1, 1}, 2048, dtype::float16));
  const expr ones = full({1, 2}, 1, dtype::float16);
  addmm(out, ones, ones.swapaxes(0, 1));
  EXPECT_EQ(out.at({0, 0}).as<float>(), 2050);
  addmm(out, full({1, 1}, 0.75, dtype::float16), full({1, 1}, 2, dtype::float16), {.alpha = 2});
  EXPECT_EQ(out.at({0, 0}).as<float>(), 2052);  // 2053 is between 2052 and 2054: ties to even
}

TEST(MatrixUpdateErrors, NameShapesAndDtypes) {
  const tensor out = tensor::zeros({2, 2}, dtype::float32);
  const expr a = zeros({2, 3}, dtype::float32);
  EXPECT_NE(text_of([&] {
              addmm(out, a, a.swapaxes(0, 1).narrow(1, 0, 1));
            }).find("got (2, 2), wanted (2, 1)"),
            std::string::npos);
  EXPECT_EQ(code_of([&] { addmm(out, a, a); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { addmm(out, a, zeros({3}, dtype::float32)); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { addmv(out, a, zeros({3}, dtype::float32)); }), errc::invalid_argument);
  EXPECT_NE(text_of([&] {
              addmm(out, a, zeros({3, 2}));
            }).find("cannot hold the products"),
            std::string::npos);
  const tensor stack = tensor::zeros({2, 2, 2}, dtype::float64);
  EXPECT_EQ(code_of([&] {
              baddbmm(stack, zeros({1, 2, 2}), zeros({2, 2, 2}));
            }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] {
              addbmm(tensor::zeros({2, 2}, dtype::float64), zeros({1, 2, 2}), zeros({2, 2, 2}));
            }),
            errc::invalid_argument);
  const tensor whole = tensor::zeros({2, 2}, dtype::int32);
  const expr one = ones({2, 2}, dtype::int32);
  EXPECT_EQ(code_of([&] { addmm(whole, one, one, {.alpha = 0.5}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] {
              addmm(whole.as_strided({2, 2}, {0, 0}, 0), one, one);
            }),
            errc::invalid_argument);
  EXPECT_EQ(elements_of<std::int32_t>(whole), std::vector<std::int32_t>(4, 0));
}

}  // namespace
}  // namespace shale
