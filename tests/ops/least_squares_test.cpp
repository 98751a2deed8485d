// Tests least squares, pseudo-inverses and ranks by what defines them, in long double.
#include "shale/least_squares.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

#include "shale/creation.hpp"
#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/memory_pool.hpp"
#include "support/failures.hpp"
#include "support/oracle_matrices.hpp"

namespace shale {
namespace {

using test::code_of;
using test::distance;
using test::elements_of;
using test::epsilon_of;
using test::matrices_of;
using test::number;
using test::numbers_of;
using test::oracle_matrix;
using test::random_choices;
using test::random_numbers;
using test::set_matrices;

constexpr dtype float_dtypes[] = {dtype::float32, dtype::float64, dtype::complex64,
                                  dtype::complex128};

// Matrices of random numbers whose rank is lower than their extents.
tensor of_rank(random_choices& choose, dtype type, index_t m, index_t n, index_t rank) {
  const oracle_matrix left = matrices_of(random_numbers(choose, type, {m, rank}))[0];
  const oracle_matrix right = matrices_of(random_numbers(choose, type, {rank, n}))[0];
  const tensor made = random_numbers(choose, type, {m, n});
  set_matrices(made, {left * right});
  return made;
}

// Small singular values make results large, and their errors too.
long double limit_for(const tensor& a, const oracle_matrix& result) {
  const long double size = 1 + result.largest();
  return 200 * epsilon_of(a.dtype()) * static_cast<long double>(a.shape(-1) + a.shape(-2) + 1) *
         size * size;
}

TEST(Pinv, SatisfiesThePenroseConditions) {
  random_choices choose(1);
  for (const dtype type : float_dtypes)
    for (const dims& shape : {dims{1, 1}, dims{4, 4}, dims{6, 3}, dims{3, 6}, dims{2, 3, 4, 2},
                              dims{0, 3}, dims{3, 0}, dims{2, 0, 0}, dims{0, 2, 3}}) {
      const tensor a = random_numbers(choose, type, shape);
      const tensor inverse = pinv(a);
      EXPECT_EQ(inverse.dtype(), type);
      EXPECT_EQ(inverse.shape(-2), a.shape(-1));
      const auto as = matrices_of(a), inverses = matrices_of(inverse);
      for (std::size_t i = 0; i < as.size(); ++i) {
        const oracle_matrix &m = as[i], &p = inverses[i];
        const long double limit = limit_for(a, p);
        EXPECT_LE(distance(m * p * m, m), limit) << to_string(shape);
        EXPECT_LE(distance(p * m * p, p), limit * (1 + p.largest())) << to_string(shape);
        EXPECT_LE(distance((m * p).adjoint(), m * p), limit);
        EXPECT_LE(distance((p * m).adjoint(), p * m), limit);
      }
    }
}

// Nothing has the square of the longer extent.
TEST(Pinv, TakesMemoryInProportionToTheMatrix) {
  random_choices choose(6);
  for (const dims& shape : {dims{20000, 3}, dims{3, 20000}}) {
    const tensor a = random_numbers(choose, dtype::float64, shape);
    memory_pool small({.limit_bytes = 16 << 20});
    executor on({.threads = 1, .pool = &small});
    const executor::scope within(on);
    const oracle_matrix m = matrices_of(a)[0], p = matrices_of(pinv(a))[0];
    const bool tall = shape[0] > shape[1];
    EXPECT_LE(distance(tall ? p * m : m * p, oracle_matrix::identity(3)), limit_for(a, p));
  }
}

TEST(Lstsq, LeavesResidualsOrthogonalToTheColumns) {
  random_choices choose(2);
  for (const dtype type : float_dtypes)
    for (const auto& [left, right] : {std::pair<dims, dims>{{6, 3}, {6, 2}},
                                      {{4, 4}, {4, 1}},
                                      {{3, 6}, {3, 2}},
                                      {{2, 1, 5, 2}, {3, 5, 2}},
                                      {{5, 2}, {3, 5, 1}},
                                      {{0, 3}, {0, 2}},
                                      {{3, 0}, {3, 2}}}) {
      const tensor a = random_numbers(choose, type, left), b = random_numbers(choose, type, right);
      const lstsq_result found = lstsq(a, b);
      EXPECT_EQ(found.x.dtype(), type);
      const auto as = matrices_of(a), xs = matrices_of(found.x), bs = matrices_of(b);
      const auto squares = numbers_of(found.residuals);
      const dims batch = broadcast_shapes(dims(left.begin(), left.end() - 2),
                                          dims(right.begin(), right.end() - 2));
      const auto at = [&](const dims& shape, std::size_t i) {
        return static_cast<std::size_t>(
            test::broadcast_positions(dims(shape.begin(), shape.end() - 2), batch)[i]);
      };
      for (std::size_t i = 0; i < xs.size(); ++i) {
        const oracle_matrix &m = as[at(left, i)], &side = bs[at(right, i)];
        const oracle_matrix error = m * xs[i] - side;
        const long double limit = limit_for(a, xs[i]);
        EXPECT_LE((m.adjoint() * error).largest(), limit) << to_string(left);
        for (index_t k = 0; k < side.columns; ++k) {
          long double square = 0;
          for (index_t r = 0; r < side.rows; ++r) square += std::norm(error(r, k));
          const auto place =
              i * static_cast<std::size_t>(side.columns) + static_cast<std::size_t>(k);
          EXPECT_LE(std::abs(squares[place] - square), limit) << to_string(left);
        }
      }
    }
}

TEST(Lstsq, TakesTheShortestOfManySolutions) {
  random_choices choose(3);
  const tensor a = of_rank(choose, dtype::float64, 5, 4, 2);
  const tensor b = random_numbers(choose, dtype::float64, {5});
  const lstsq_result found = lstsq(a, b);
  EXPECT_EQ(found.x.shape(), (dims{4}));
  EXPECT_EQ(found.residuals.rank(), 0);
  EXPECT_EQ(found.rank.item().as<index_t>(), 2);
  EXPECT_EQ(found.singular_values.shape(), (dims{4}));
  // The shortest solution is the pseudo-inverse's.
  const oracle_matrix x = matrices_of(found.x.expand_dims(-1))[0];
  const oracle_matrix wanted = matrices_of(pinv(a))[0] * matrices_of(b.expand_dims(-1))[0];
  EXPECT_LE(distance(x, wanted), 1e-13L * (1 + wanted.largest()));
}

// A singular value that is nearly the largest one times the tolerance counts for both or for none.
TEST(Lstsq, SolutionsHaveTheRankThatIsTold) {
  const tensor b = tensor::ones({2}, dtype::float32);
  for (int largest = 1; largest <= 100; ++largest)
    for (int step = -2; step <= 2; ++step) {
      const auto first = static_cast<float>(largest);
      auto second = static_cast<float>(largest * 0.1);
      for (int k = 0; k < std::abs(step); ++k)
        second = std::nextafter(second, step < 0 ? 0.0f : first);
      const tensor a = tensor::of<float>({{first, 0}, {0, second}});
      const lstsq_result found = lstsq(a, b, 0.1);
      const auto values = elements_of<float>(found.singular_values);
      const index_t rank = double{values[1]} > double{values[0]} * 0.1 ? 2 : 1;
      index_t used = 0;
      for (const float x : elements_of<float>(found.x)) used += std::fabs(x) > 1e-4f ? 1 : 0;
      EXPECT_EQ(found.rank.item().as<index_t>(), rank) << largest << " " << step;
      EXPECT_EQ(used, rank) << largest << " " << step;
    }
}

TEST(MatrixRank, CountsValuesAboveTheTolerance) {
  random_choices choose(4);
  for (const dtype type : float_dtypes)
    for (const auto& [m, n, rank] : {std::tuple<index_t, index_t, index_t>{5, 7, 3},
                                     {4, 4, 4},
                                     {6, 2, 1},
                                     {3, 3, 0},
                                     {0, 4, 0}})
      EXPECT_EQ(matrix_rank(of_rank(choose, type, m, n, rank)).item().as<index_t>(), rank);
  const tensor graded = tensor::of<double>({{1, 0}, {0, 1e-5}});
  EXPECT_EQ(matrix_rank(graded).item().as<index_t>(), 2);
  EXPECT_EQ(matrix_rank(graded, 1e-3).item().as<index_t>(), 1);
  EXPECT_EQ(matrix_rank(tensor::ones({2, 0, 3}, dtype::float64)).shape(), (dims{2}));
}

TEST(Cond, IsTheRatioOfSingularValues) {
  EXPECT_NEAR(cond(tensor::of<double>({{8, 0}, {0, -2}})).item().as<double>(), 4, 1e-14);
  EXPECT_EQ(cond(tensor::zeros({2, 2}, dtype::float32)).item().as<double>(),
            std::numeric_limits<double>::infinity());
  EXPECT_EQ(cond(tensor::ones({3, 2, 5}, dtype::float32)).shape(), (dims{3}));
}

TEST(LeastSquares, RefuseArgumentsThatDoNotFit) {
  const tensor a = tensor::ones({3, 2}, dtype::float64);
  const auto refused = [](auto call) { return code_of(call) == errc::invalid_argument; };
  EXPECT_TRUE(refused([&] { lstsq(a, tensor::ones({2}, dtype::float64)); }));
  EXPECT_TRUE(refused([&] { lstsq(a, 1.0); }));
  EXPECT_TRUE(refused([&] { lstsq(a.select(0, 0), a); }));
  EXPECT_TRUE(refused([&] { pinv(a, -1.0); }));
  EXPECT_TRUE(refused([&] { pinv(a, std::numeric_limits<double>::quiet_NaN()); }));
  EXPECT_TRUE(refused([&] { cond(tensor::ones({0, 2}, dtype::float64)); }));
}

}  // namespace
}  // namespace shale
