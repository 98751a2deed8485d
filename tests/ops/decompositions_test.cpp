// Tests factorizations by multiplying their factors again, in long double.
#include "shale/decompositions.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "shale/creation.hpp"
#include "shale/error.hpp"
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
const dims shapes[] = {{1, 1}, {4, 4}, {6, 3}, {3, 6},    {2, 3, 5, 2}, {40, 33}, {33, 40},
                       {0, 3}, {3, 0}, {0, 0}, {0, 3, 2}, {2, 0, 2},    {2, 3, 0}};

long double limit_for(const tensor& a) {
  return 20 * epsilon_of(a.dtype()) * static_cast<long double>(a.shape(-1) + a.shape(-2) + 1);
}

void expect_orthonormal(const oracle_matrix& columns, long double limit, const std::string& what) {
  EXPECT_LE(distance(columns.adjoint() * columns, oracle_matrix::identity(columns.columns)), limit)
      << what;
}

TEST(Lu, FactorsTimesThePermutationAreTheMatrix) {
  random_choices choose(1);
  for (const dtype type : float_dtypes)
    for (const dims& shape : shapes) {
      const std::string what = to_string(shape) + " " + std::string(name(type));
      const tensor a = random_numbers(choose, type, shape);
      const lu_result found = lu(a);
      EXPECT_EQ(found.l.dtype(), type);
      EXPECT_NE(kind(found.p.dtype()), dtype_kind::complex);
      const auto as = matrices_of(a), ps = matrices_of(found.p), ls = matrices_of(found.l),
                 us = matrices_of(found.u);
      ASSERT_EQ(ps.size(), as.size());
      for (std::size_t i = 0; i < as.size(); ++i) {
        EXPECT_LE(distance(ps[i] * ls[i] * us[i], as[i]), limit_for(a)) << what;
        EXPECT_EQ(
            distance(ps[i] * ps[i].transposed(), oracle_matrix::identity(shape[shape.size() - 2])),
            0);
        EXPECT_EQ(distance(ls[i], ls[i].lower()), 0) << what;
        EXPECT_EQ(distance(us[i], us[i].upper()), 0) << what;
        for (index_t k = 0; k < ls[i].columns; ++k) EXPECT_EQ(ls[i](k, k), number(1));
      }
    }
}

TEST(Lu, PackedFactorsSolveEquations) {
  random_choices choose(2);
  for (const dtype type : float_dtypes)
    for (const dims& shape : {dims{1, 1}, dims{5, 5}, dims{3, 4, 4}, dims{0, 0}, dims{2, 0, 0}}) {
      const tensor a = random_numbers(choose, type, shape);
      const lu_factors factors = lu_factor(a);
      EXPECT_EQ(factors.pivots.dtype(), dtype::int64);
      const tensor b = random_numbers(choose, type, {shape.back(), 2});
      const tensor x = lu_solve(factors, b);
      const auto as = matrices_of(a), xs = matrices_of(x), bs = matrices_of(b);
      for (std::size_t i = 0; i < as.size(); ++i)
        EXPECT_LE(distance(as[i] * xs[i], bs[0]), limit_for(a) * (1 + xs[i].largest()));
    }
}

TEST(Lu, RefusesPivotsThatAreNotThoseOfTheFactors) {
  random_choices choose(3);
  const lu_factors good = lu_factor(random_numbers(choose, dtype::float64, {3, 3}));
  for (const index_t wrong : {-1, 3, 1 << 30}) {
    const tensor pivots = good.pivots.clone();
    eval_into(pivots.index({1}), wrong);
    EXPECT_EQ(code_of([&] {
                lu_solve({good.packed, pivots}, good.packed);
              }),
              errc::invalid_argument);
  }
  EXPECT_EQ(code_of([&] {
              lu_solve({good.packed, good.pivots.narrow(0, 0, 2)}, good.packed);
            }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] { lu(tensor::ones({3}, dtype::float64)); }), errc::invalid_argument);
}

TEST(Lu, OfBroadcastMatricesHasTheirBatch) {
  random_choices choose(4);
  const tensor a = random_numbers(choose, dtype::float32, {3, 2}).broadcast_to({4, 3, 2});
  const auto ps = matrices_of(lu(a).p);
  EXPECT_EQ(ps.size(), 4U);
  EXPECT_EQ(lu_factor(a).pivots.shape(), (dims{4, 2}));
  EXPECT_EQ(qr(a).q.shape(), (dims{4, 3, 2}));
}

TEST(Qr, OrthonormalColumnsTimesATriangleAreTheMatrix) {
  random_choices choose(5);
  for (const dtype type : float_dtypes)
    for (const dims& shape : shapes)
      for (const qr_columns columns : {qr_columns::reduced, qr_columns::complete}) {
        const std::string what = to_string(shape) + " " + std::string(name(type));
        const tensor a = random_numbers(choose, type, shape);
        const qr_result found = qr(a, columns);
        const index_t m = a.shape(-2), n = a.shape(-1);
        EXPECT_EQ(found.q.dtype(), type);
        EXPECT_EQ(found.q.shape(-1), columns == qr_columns::complete ? m : std::min(m, n));
        const auto as = matrices_of(a), qs = matrices_of(found.q), rs = matrices_of(found.r);
        ASSERT_EQ(qs.size(), as.size());
        for (std::size_t i = 0; i < as.size(); ++i) {
          EXPECT_LE(distance(qs[i] * rs[i], as[i]), limit_for(a)) << what;
          expect_orthonormal(qs[i], limit_for(a), what);
          EXPECT_EQ(distance(rs[i], rs[i].upper()), 0) << what;
        }
        if (columns == qr_columns::complete) continue;
        const auto alone = matrices_of(qr_r(a));
        for (std::size_t i = 0; i < as.size(); ++i) EXPECT_EQ(distance(alone[i], rs[i]), 0);
      }
}

TEST(Qr, IsAppliedWithoutBeingComputed) {
  random_choices choose(6);
  for (const dtype type : float_dtypes)
    for (const dims& shape : {dims{5, 3}, dims{3, 5}, dims{2, 4, 4}, dims{3, 0}, dims{0, 3}})
      for (const matrix_use use : {matrix_use::as_is, matrix_use::conjugate_transposed})
        for (const q_side side : {q_side::left, q_side::right}) {
          const tensor a = random_numbers(choose, type, shape);
          const index_t m = a.shape(-2);
          const auto qs = matrices_of(qr(a, qr_columns::complete).q);
          const tensor c =
              random_numbers(choose, type, side == q_side::left ? dims{m, 2} : dims{2, m});
          const auto found = matrices_of(apply_q(qr_factor(a), c, use, side));
          const oracle_matrix operand = matrices_of(c)[0];
          for (std::size_t i = 0; i < qs.size(); ++i) {
            const oracle_matrix q = use == matrix_use::as_is ? qs[i] : qs[i].adjoint();
            EXPECT_LE(distance(found[i], side == q_side::left ? q * operand : operand * q),
                      limit_for(a))
                << to_string(shape);
          }
        }
  const qr_factors factors = qr_factor(tensor::ones({3, 2}, dtype::complex64));
  const tensor c = tensor::ones({3, 3}, dtype::complex64);
  EXPECT_EQ(code_of([&] { apply_q(factors, c, matrix_use::transposed); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { apply_q(factors, c.narrow(0, 0, 2)); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { apply_q({factors.packed, factors.packed}, c); }), errc::invalid_argument);
}

TEST(PivotedCholesky, FindsTheRankAndOrdersThePivots) {
  random_choices choose(7);
  for (const dtype type : float_dtypes)
    for (const triangle part : {triangle::lower, triangle::upper})
      for (const auto& [n, rank] :
           {std::pair<index_t, index_t>{1, 1}, {5, 5}, {6, 2}, {40, 7}, {3, 0}, {0, 0}}) {
        const auto factor = matrices_of(random_numbers(choose, type, {n, rank}));
        const oracle_matrix wanted = factor[0] * factor[0].adjoint();
        const tensor a = random_numbers(choose, type, {n, n});
        set_matrices(a, {wanted});
        const pivoted_cholesky_result found = pivoted_cholesky(a, part);
        EXPECT_EQ(elements_of<std::int64_t>(found.rank)[0], rank) << n;
        const auto order = elements_of<std::int64_t>(found.pivots);
        oracle_matrix ordered(n, n);
        for (index_t i = 0; i < n; ++i)
          for (index_t j = 0; j < n; ++j)
            ordered(i, j) =
                wanted(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(j)]);
        const oracle_matrix l = matrices_of(found.factor)[0];
        const bool below = part == triangle::lower;
        EXPECT_EQ(distance(l, below ? l.lower() : l.upper()), 0);
        EXPECT_LE(distance(below ? l * l.adjoint() : l.adjoint() * l, ordered),
                  100 * epsilon_of(type) * static_cast<long double>(n + 1));
        for (index_t i = 1; i < rank; ++i) EXPECT_LE(std::abs(l(i, i)), std::abs(l(i - 1, i - 1)));
      }
}

TEST(PivotedCholesky, StopsAtTheToleranceThatIsGiven) {
  const tensor a = tensor::of<double>({{4, 0, 0}, {0, 1, 0}, {0, 0, 9}});
  const auto rank_for = [&](double tolerance) {
    return elements_of<std::int64_t>(pivoted_cholesky(a, triangle::lower, tolerance).rank)[0];
  };
  EXPECT_EQ(rank_for(0), 3);
  EXPECT_EQ(rank_for(1), 2);
  EXPECT_EQ(rank_for(4), 1);
  for (const double wrong : {-1.0, std::nan("")})
    EXPECT_EQ(code_of([&] { rank_for(wrong); }), errc::invalid_argument) << wrong;
}

}  // namespace
}  // namespace shale
