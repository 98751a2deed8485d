// Tests systems of equations, inverses, determinants and Cholesky factors by what defines them: the
// residuals of the results, computed in long double.
#include "shale/linear_systems.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "shale/creation.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/linalg.hpp"
#include "shale/manipulation.hpp"
#include "support/failures.hpp"
#include "support/oracle_matrices.hpp"
#include "support/random_tensors.hpp"

namespace shale {
namespace {

using test::code_of;
using test::distance;
using test::epsilon_of;
using test::matrices_of;
using test::number;
using test::numbers_of;
using test::oracle_matrix;
using test::random_choices;
using test::random_numbers;
using test::set_matrices;
using test::text_of;

constexpr dtype float_dtypes[] = {dtype::float32, dtype::float64, dtype::complex64,
                                  dtype::complex128};
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

// Random square matrices that are far from singular, of a random layout.
tensor regular(random_choices& choose, dtype type, const dims& shape) {
  const tensor made = random_numbers(choose, type, shape);
  const tensor diagonal = made.diagonal(0, -2, -1);
  eval_into(diagonal, expr(diagonal) + static_cast<double>(shape.back()));
  return made;
}

// Hermitian positive definite matrices, of a random layout: products with the adjoint, and the
// identity.
tensor definite(random_choices& choose, dtype type, const dims& shape) {
  const tensor made = random_numbers(choose, type, shape);
  std::vector<oracle_matrix> matrices = matrices_of(made);
  for (oracle_matrix& matrix : matrices) {
    matrix = matrix * matrix.adjoint();
    for (index_t i = 0; i < matrix.rows; ++i) matrix(i, i) += 1;
  }
  set_matrices(made, matrices);
  return made;
}

// The matrix of `all` that stands at place `number` when the batch is broadcast to `batch`.
const oracle_matrix& broadcast_at(const std::vector<oracle_matrix>& all, const dims& batch_of_all,
                                  const dims& batch, std::size_t place) {
  return all[static_cast<std::size_t>(test::broadcast_positions(batch_of_all, batch)[place])];
}

dims batch_of(const tensor& values) {
  return dims(values.shape().begin(), values.shape().end() - 2);
}

// The largest error of a x = b, for matrices with elements of magnitude n or so.
void expect_solves(const tensor& a, const tensor& x, const tensor& b, const std::string& what) {
  const auto as = matrices_of(a), xs = matrices_of(x), bs = matrices_of(b);
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const oracle_matrix& matrix = broadcast_at(as, batch_of(a), batch_of(x), i);
    const oracle_matrix& right = broadcast_at(bs, batch_of(b), batch_of(x), i);
    const long double limit = 8 * epsilon_of(x.dtype()) *
                              static_cast<long double>(a.shape(-1) + 1) *
                              (matrix.largest() * xs[i].largest() + right.largest());
    EXPECT_LE(distance(matrix * xs[i], right), limit) << what;
  }
}

TEST(Solve, HasSmallResidualsForAnyLayoutAndBatch) {
  random_choices choose(1);
  const std::vector<std::pair<dims, dims>> shapes{
      {{1, 1}, {1, 1}},       {{2, 2}, {2, 3}},          {{5, 5}, {5, 1}},
      {{70, 70}, {70, 5}},    {{3, 4, 4}, {3, 4, 2}},    {{4, 4}, {3, 4, 2}},
      {{3, 4, 4}, {4, 2}},    {{2, 1, 3, 3}, {5, 3, 2}}, {{0, 0}, {0, 3}},
      {{3, 3}, {3, 0}},       {{0, 3, 3}, {0, 3, 2}},    {{2, 0, 0}, {2, 0, 0}},
      {{130, 130}, {130, 70}}};
  for (const dtype type : float_dtypes)
    for (const auto& [left, right] : shapes) {
      const tensor a = regular(choose, type, left), b = random_numbers(choose, type, right);
      const tensor x = solve(a, b);
      EXPECT_EQ(x.dtype(), type);
      EXPECT_TRUE(x.is_contiguous());
      const dims batch = broadcast_shapes(batch_of(a), batch_of(b));
      EXPECT_EQ(batch_of(x), batch);
      EXPECT_EQ(x.shape(-1), b.shape(-1));
      expect_solves(a, x, b, to_string(left) + " " + std::string(name(type)));
    }
}

TEST(Solve, TakesOneVectorForTheWholeBatch) {
  random_choices choose(2);
  const tensor a = regular(choose, dtype::float64, {3, 4, 4});
  const tensor b = random_numbers(choose, dtype::float64, {4});
  const tensor x = solve(a, b);
  EXPECT_EQ(x.shape(), (dims{3, 4}));
  expect_solves(a, x.expand_dims(-1), b.expand_dims(-1), "vector");
}

TEST(Solve, ReadsBroadcastMatricesOnce) {
  random_choices choose(3);
  const tensor a = regular(choose, dtype::float64, {4, 4}).broadcast_to({3, 4, 4});
  const tensor b = random_numbers(choose, dtype::float64, {4, 2}).broadcast_to({3, 4, 2});
  const tensor x = solve(a, b);
  EXPECT_EQ(x.shape(), (dims{3, 4, 2}));
  expect_solves(a, x, b, "broadcast");
  const tensor inverse = inv(a);
  EXPECT_EQ(inverse.shape(), (dims{3, 4, 4}));
  EXPECT_TRUE(inverse.is_contiguous());
  EXPECT_EQ(det(a).shape(), (dims{3}));
}

TEST(Solve, PromotesAsNumPyDoes) {
  random_choices choose(4);
  const tensor whole = regular(choose, dtype::int16, {3, 3});
  EXPECT_EQ(solve(whole, whole).dtype(), dtype::float64);
  EXPECT_EQ(solve(whole, eval(eye(3, {}, 0, dtype::float32))).dtype(), dtype::float64);
  EXPECT_EQ(solve(eval(eye(3, {}, 0, dtype::complex64)), whole).dtype(), dtype::complex128);
  EXPECT_EQ(solve(eval(eye(3, {}, 0, dtype::boolean)), whole).dtype(), dtype::float64);
  const tensor half =
      solve(eval(eye(3, {}, 0, dtype::float16)), eval(eye(3, {}, 0, dtype::float16) * 3));
  EXPECT_EQ(half.dtype(), dtype::float16);
  EXPECT_EQ(numbers_of(half)[4], number(3));
  expect_solves(whole, solve(whole, whole), whole, "integers");
}

// batch.1, lapack.1, lapack.2
TEST(Solve, GivesTheSameBitsForAnyLayoutAndNumberOfThreads) {
  random_choices choose(5);
  const tensor a = regular(choose, dtype::float64, {40, 9, 9});
  const tensor b = random_numbers(choose, dtype::float64, {40, 9, 3});
  executor one({.threads = 1}), four({.threads = 4});
  tensor first, second;
  {
    const executor::scope within(one);
    first = solve(a, b);
  }
  {
    const executor::scope within(four);
    second = solve(eval(expr(a) * 1), eval(expr(b).swapaxes(-2, -1)).swapaxes(-2, -1));
  }
  EXPECT_EQ(test::bytes_of(first.storage()), test::bytes_of(second.storage()));
}

// batch.2
TEST(Solve, NamesTheFirstSingularMatrixAndItsPivot) {
  const tensor a = eval(eye(3) + zeros({2, 50, 3, 3}, dtype::float64));
  eval_into(a.index({1, 7, 1, 1}), 0.0);
  eval_into(a.index({1, 40, 0, 0}), 0.0);
  const auto text = text_of([&] { solve(a, a); });
  EXPECT_NE(text.find("solve: a matrix is singular [invalid_argument]"), std::string::npos) << text;
  EXPECT_NE(text.find("matrix (1, 7) of the batch (2, 50), shape (3, 3)"), std::string::npos);
  EXPECT_NE(text.find("element (1, 1) of its LU factor u is zero"), std::string::npos);
  const auto of_inverse = text_of([] { inv(tensor::zeros({2, 2}, dtype::float32)); });
  EXPECT_NE(of_inverse.find("inv: a matrix is singular"), std::string::npos) << of_inverse;
  EXPECT_NE(of_inverse.find("the matrix, shape (2, 2)"), std::string::npos) << of_inverse;
}

TEST(Solve, RefusesShapesAndDtypesThatDoNotFit) {
  const tensor square = tensor::ones({3, 3}, dtype::float64);
  const auto refused = [](auto call) { return code_of(call) == errc::invalid_argument; };
  EXPECT_TRUE(refused([&] { solve(tensor::ones({3, 2}, dtype::float64), square); }));
  EXPECT_TRUE(refused([&] { solve(square, tensor::ones({2, 3}, dtype::float64)); }));
  EXPECT_TRUE(refused([&] { solve(square, 1.0); }));
  EXPECT_TRUE(refused([&] { solve(tensor::ones({3}, dtype::float64), square); }));
  EXPECT_TRUE(refused([&] { inv(tensor::ones({4, 2, 3}, dtype::float64)); }));
  EXPECT_TRUE(refused([&] { det(tensor::ones({2, 3}, dtype::float64)); }));
  EXPECT_TRUE(refused([&] { slogdet(tensor::ones({2}, dtype::float64)); }));
  EXPECT_TRUE(refused([&] { inv(tensor::zeros({2, 2}, dtype::float8_e5m2)); }));
  EXPECT_TRUE(refused([&] {
    solve(tensor::ones({2, 3, 3}, dtype::float64), tensor::ones({4, 3, 1}, dtype::float64));
  }));
  EXPECT_TRUE(refused([&] { cholesky(square, static_cast<triangle>(7)); }));
  EXPECT_TRUE(
      refused([&] { triangular_solve(square, square, {.use = static_cast<matrix_use>(9)}); }));
  const auto text = text_of([&] { inv(tensor::ones({4, 2, 3}, dtype::float64)); });
  EXPECT_NE(text.find("got shape (4, 2, 3)"), std::string::npos) << text;
}

// lapack.3
TEST(Solve, RefusesExtentsBeyond32BitsBeforeItTakesMemory) {
  const tensor one = tensor::ones({1, 1}, dtype::float32);
  const index_t rows = index_t{1} << 31;
  EXPECT_EQ(code_of([&] { det(one.broadcast_to({rows, rows})); }), errc::unsupported);
  EXPECT_EQ(code_of([&] { det(one.broadcast_to({rows - 1, rows - 1})); }), errc::out_of_memory);
}

TEST(Solve, SpreadsNaNAndRefusesNone) {
  const tensor a = tensor::of<double>({{1, nan}, {nan, 1}});
  for (const number& value : numbers_of(solve(a, eval(eye(2)))))
    EXPECT_TRUE(std::isnan(value.real()));
  for (const number& value : numbers_of(inv(a))) EXPECT_TRUE(std::isnan(value.real()));
  EXPECT_TRUE(std::isnan(det(a).item().as<double>()));
  EXPECT_EQ(det(tensor::of<double>({{1, 0}, {0, infinity}})).item().as<double>(), infinity);
  for (const dtype type : float_dtypes)
    for (const index_t n : {1, 2, 3, 7, 16, 33, 70}) {
      const tensor all = eval(astype(full({n, n}, nan, dtype::float64), type));
      for (const tensor& result : {inv(all), solve(all, all), det(all)})
        for (const number& value : numbers_of(result)) EXPECT_TRUE(std::isnan(value.real())) << n;
    }
}

TEST(Solve, CanBeCancelled) {
  executor on({.threads = 2});
  on.cancel();
  const executor::scope within(on);
  const tensor a = tensor::ones({2, 3, 3}, dtype::float64);
  EXPECT_EQ(code_of([&] { inv(a); }), errc::cancelled);
}

TEST(Solve, ReportsExhaustedMemory) {
  memory_pool small({.limit_bytes = 1 << 20});
  executor on({.threads = 1, .pool = &small});
  const executor::scope within(on);
  const tensor one = tensor::ones({1, 1}, dtype::float64);
  EXPECT_EQ(code_of([&] { inv(one.broadcast_to({1000, 1000})); }), errc::out_of_memory);
}

TEST(Inv, TimesTheMatrixIsTheIdentity) {
  random_choices choose(6);
  for (const dtype type : float_dtypes)
    for (const dims& shape : {dims{1, 1}, dims{4, 4}, dims{2, 3, 5, 5}, dims{0, 0}, dims{3, 0, 0},
                              dims{0, 2, 2}, dims{70, 70}}) {
      const tensor a = regular(choose, type, shape);
      const tensor inverse = inv(a);
      EXPECT_EQ(inverse.shape(), shape);
      EXPECT_EQ(inverse.dtype(), type);
      const auto as = matrices_of(a), inverses = matrices_of(inverse);
      for (std::size_t i = 0; i < as.size(); ++i)
        EXPECT_LE(distance(as[i] * inverses[i], oracle_matrix::identity(shape.back())),
                  30 * epsilon_of(type) * static_cast<long double>(shape.back()))
            << to_string(shape);
    }
}

// The determinant by expansion along the first row.
number expanded(const oracle_matrix& a) {
  if (a.rows == 0) return 1;
  number total = 0;
  for (index_t skipped = 0; skipped < a.columns; ++skipped) {
    oracle_matrix minor(a.rows - 1, a.columns - 1);
    for (index_t i = 1; i < a.rows; ++i)
      for (index_t j = 0, to = 0; j < a.columns; ++j)
        if (j != skipped) minor(i - 1, to++) = a(i, j);
    total += (skipped % 2 == 0 ? 1.0L : -1.0L) * a(0, skipped) * expanded(minor);
  }
  return total;
}

TEST(Det, IsTheExpansionAlongRows) {
  random_choices choose(7);
  for (const dtype type : float_dtypes)
    for (const dims& shape : {dims{1, 1}, dims{2, 2}, dims{4, 3, 3}, dims{2, 2, 5, 5}, dims{0, 0},
                              dims{2, 0, 0}, dims{0, 2, 2}}) {
      const tensor a = random_numbers(choose, type, shape);
      const tensor found = det(a);
      const slogdet_result split = slogdet(a);
      EXPECT_EQ(found.shape(), batch_of(a));
      EXPECT_EQ(found.dtype(), type);
      EXPECT_EQ(split.sign.dtype(), type);
      EXPECT_EQ(kind(split.logabsdet.dtype()), dtype_kind::floating);
      const auto values = numbers_of(found), signs = numbers_of(split.sign),
                 logarithms = numbers_of(split.logabsdet);
      const auto as = matrices_of(a);
      for (std::size_t i = 0; i < as.size(); ++i) {
        const number wanted = expanded(as[i]);
        EXPECT_LE(std::abs(values[i] - wanted), 200 * epsilon_of(type)) << to_string(shape);
        EXPECT_LE(std::abs(signs[i] * std::exp(logarithms[i]) - wanted), 200 * epsilon_of(type));
      }
    }
}

TEST(Det, OverflowsOnlyIfTheResultDoes) {
  const tensor powers = eval(eye(4) * 0.0);
  const double diagonal[] = {1e300, 1e300, 1e-300, -1e-298};
  for (index_t i = 0; i < 4; ++i) eval_into(powers.index({i, i}), diagonal[i]);
  EXPECT_NEAR(det(powers).item().as<double>(), -100, 1e-10);
  eval_into(powers.index({2, 2}), 1e300);
  EXPECT_EQ(det(powers).item().as<double>(), -infinity);
  EXPECT_NEAR(slogdet(powers).logabsdet.item().as<double>(), 602 * std::log(10), 1e-9);
  EXPECT_EQ(slogdet(powers).sign.item().as<double>(), -1);
}

TEST(Det, OfSingularMatricesIsZero) {
  const tensor a = tensor::of<double>({{1, 2}, {2, 4}});
  EXPECT_EQ(det(a).item().as<double>(), 0);
  EXPECT_EQ(slogdet(a).sign.item().as<double>(), 0);
  EXPECT_EQ(slogdet(a).logabsdet.item().as<double>(), -infinity);
}

TEST(Cholesky, FactorsTimesTheirAdjointsAreTheMatrices) {
  random_choices choose(8);
  for (const dtype type : float_dtypes)
    for (const dims& shape : {dims{1, 1}, dims{5, 5}, dims{3, 2, 4, 4}, dims{0, 0}, dims{2, 0, 0},
                              dims{0, 3, 3}, dims{35, 35}})
      for (const triangle part : {triangle::lower, triangle::upper}) {
        const tensor a = definite(choose, type, shape);
        const auto wanted = matrices_of(a);
        // The other triangle is not read.
        const bool below = part == triangle::lower;
        eval_into(a, where(below ? expr(tril(expr(tensor::ones(shape, dtype::boolean))))
                                 : expr(triu(expr(tensor::ones(shape, dtype::boolean)))),
                           a, expr(nan)));
        const tensor factor = cholesky(a, part);
        EXPECT_EQ(factor.shape(), shape);
        EXPECT_EQ(factor.dtype(), type);
        const auto factors = matrices_of(factor);
        const tensor inverse = cholesky_inverse(factor, part);
        const auto inverses = matrices_of(inverse);
        const tensor b = random_numbers(choose, type, shape);
        const auto solutions = matrices_of(cholesky_solve(factor, b, part)), bs = matrices_of(b);
        const auto n = static_cast<long double>(shape.back());
        for (std::size_t i = 0; i < wanted.size(); ++i) {
          const oracle_matrix& made = factors[i];
          const oracle_matrix product = below ? made * made.adjoint() : made.adjoint() * made;
          EXPECT_EQ(distance(made, below ? made.lower() : made.upper()), 0);
          const long double limit = 8 * epsilon_of(type) * n * (1 + wanted[i].largest());
          EXPECT_LE(distance(product, wanted[i]), limit);
          // Their condition is that of the matrix, whose smallest eigenvalue is above 1.
          EXPECT_LE(distance(wanted[i] * inverses[i], oracle_matrix::identity(shape.back())),
                    limit * n);
          EXPECT_LE(distance(wanted[i] * solutions[i], bs[i]), limit * n);
        }
      }
}

TEST(Cholesky, NamesTheOrderThatIsNotPositiveDefinite) {
  const tensor a = eval(eye(3) + zeros({4, 3, 3}, dtype::complex64));
  eval_into(a.index({2, 1, 1}), -1.0);
  const auto text = text_of([&] { cholesky(a); });
  EXPECT_NE(text.find("cholesky: a matrix is not positive definite"), std::string::npos) << text;
  EXPECT_NE(text.find("matrix (2,) of the batch (4,)"), std::string::npos) << text;
  EXPECT_NE(text.find("leading minor of order 2"), std::string::npos) << text;
  EXPECT_EQ(code_of([&] { cholesky(a); }), errc::invalid_argument);
}

TEST(TriangularSolve, UsesOnePartOfTheMatrixAsAsked) {
  random_choices choose(9);
  for (const dtype type : float_dtypes)
    for (const dims& shape : {dims{1, 1}, dims{4, 4}, dims{2, 3, 3}, dims{30, 30}, dims{0, 0}})
      for (const triangle part : {triangle::lower, triangle::upper})
        for (const matrix_use use :
             {matrix_use::as_is, matrix_use::transposed, matrix_use::conjugate_transposed})
          for (const unit_diagonal unit : {unit_diagonal::no, unit_diagonal::yes}) {
            const auto n = static_cast<double>(shape.back());
            const tensor a = regular(choose, type, shape);
            // Small elements beside a diagonal of ones.
            if (unit == unit_diagonal::yes) eval_into(a, expr(a) / (2 * n + 1));
            const tensor b = random_numbers(choose, type, {shape.back(), 2});
            const auto xs = matrices_of(triangular_solve(a, b, {part, use, unit}));
            const auto as = matrices_of(a), bs = matrices_of(b);
            for (std::size_t i = 0; i < as.size(); ++i) {
              oracle_matrix used = part == triangle::lower ? as[i].lower() : as[i].upper();
              if (unit == unit_diagonal::yes)
                for (index_t k = 0; k < shape.back(); ++k) used(k, k) = 1;
              if (use == matrix_use::transposed) used = used.transposed();
              if (use == matrix_use::conjugate_transposed) used = used.adjoint();
              EXPECT_LE(distance(used * xs[i], bs[0]),
                        16 * epsilon_of(type) * (n + 1) * (used.largest() * xs[i].largest() + 1));
            }
          }
}

TEST(TriangularSolve, NamesTheZeroOnTheDiagonal) {
  const tensor a = tensor::of<double>({{1, 0, 0}, {1, 1, 0}, {1, 1, 0}});
  const auto text = text_of([&] { triangular_solve(a, a); });
  EXPECT_NE(text.find("triangular_solve: a triangular matrix is singular"), std::string::npos);
  EXPECT_NE(text.find("its element (2, 2) is zero"), std::string::npos) << text;
  EXPECT_NO_THROW(triangular_solve(a, a, {.unit = unit_diagonal::yes}));
}

}  // namespace
}  // namespace shale
