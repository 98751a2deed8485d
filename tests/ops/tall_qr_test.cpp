// Tests QR factorizations by blocks of rows: by multiplying the factors in long double, by another
// orthogonalization, and by comparing the bits of one matrix in different layouts.
#include "shale/tall_qr.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "ops/functions/linear_algebra/tall_factors.hpp"
#include "shale/creation.hpp"
#include "shale/decompositions.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"
#include "shale/evaluate.hpp"
#include "shale/executor.hpp"
#include "shale/mapped_file.hpp"
#include "shale/reductions.hpp"
#include "shale/rolling.hpp"
#include "shale/tile_source.hpp"
#include "support/counted_tiles.hpp"
#include "support/failures.hpp"
#include "support/oracle_matrices.hpp"
#include "support/run_on.hpp"
#include "support/scratch_directory.hpp"
#include "support/small_stack.hpp"
#include "support/tensor_tiles.hpp"

namespace shale {
namespace {

using test::code_of;
using test::distance;
using test::elements_of;
using test::epsilon_of;
using test::matrices_of;
using test::number;
using test::oracle_matrix;
using test::random_choices;
using test::random_numbers;
using test::run_on;

constexpr dtype float_dtypes[] = {dtype::float32, dtype::float64, dtype::complex64,
                                  dtype::complex128};

/// Three blocks, the last of which has fewer rows than columns.
constexpr index_t few_columns = 8;
constexpr index_t block_rows = (index_t{1} << 18) / few_columns;
constexpr index_t many_rows = 2 * block_rows + 3;

long double limit_for(const tensor& a) {
  return 20 * epsilon_of(a.dtype()) *
         (static_cast<long double>(a.shape(1) + 1) +
          std::sqrt(static_cast<long double>(a.shape(0))));
}

void expect_factors(const tensor& a, const tsqr_result& found, const std::string& what) {
  const index_t k = std::min(a.shape(0), a.shape(1));
  EXPECT_EQ(found.q.dtype(), a.dtype()) << what;
  EXPECT_EQ(found.r.dtype(), a.dtype()) << what;
  ASSERT_EQ(found.q.shape(), (dims{a.shape(0), k})) << what;
  ASSERT_EQ(found.r.shape(), (dims{k, a.shape(1)})) << what;
  const oracle_matrix whole = matrices_of(a)[0], q = matrices_of(eval(found.q))[0],
                      r = matrices_of(found.r)[0];
  const long double limit = limit_for(a) * std::max(1.0L, r.largest());
  EXPECT_LE(distance(q * r, whole), limit) << what;
  EXPECT_LE(distance(q.adjoint() * q, oracle_matrix::identity(k)), limit_for(a)) << what;
  EXPECT_EQ(distance(r, r.upper()), 0) << what;
  for (index_t i = 0; i < k; ++i) {
    EXPECT_GE(r(i, i).real(), 0) << what;
    EXPECT_EQ(r(i, i).imag(), 0) << what;
  }
}

/// The triangle of the Gram-Schmidt process, whose diagonal is positive.
oracle_matrix gram_schmidt(oracle_matrix a) {
  oracle_matrix r(a.columns, a.columns);
  for (index_t column = 0; column < a.columns; ++column) {
    for (int repeated = 0; repeated < 2; ++repeated)
      for (index_t before = 0; before < column; ++before) {
        number product = 0;
        for (index_t i = 0; i < a.rows; ++i) product += std::conj(a(i, before)) * a(i, column);
        for (index_t i = 0; i < a.rows; ++i) a(i, column) -= product * a(i, before);
        r(before, column) += product;
      }
    long double squares = 0;
    for (index_t i = 0; i < a.rows; ++i) squares += std::norm(a(i, column));
    r(column, column) = std::sqrt(squares);
    for (index_t i = 0; i < a.rows; ++i) a(i, column) /= r(column, column);
  }
  return r;
}

TEST(Tsqr, OrthonormalColumnsTimesATriangleAreTheMatrix) {
  random_choices choose(1);
  for (const dtype type : float_dtypes)
    for (const dims& shape : {dims{1, 1}, dims{3, 1}, dims{1, 3}, dims{5, 5}, dims{40, 7},
                              dims{7, 40}, dims{300, 20}, dims{many_rows, few_columns}}) {
      const tensor a = random_numbers(choose, type, shape);
      expect_factors(a, tsqr(a), to_string(shape) + " " + std::string(name(type)));
    }
}

TEST(Tsqr, IsCutByTheShapeAlone) {
  const ops::row_blocks cut(many_rows, few_columns, few_columns);
  EXPECT_EQ(cut.block, block_rows);
  EXPECT_EQ(cut.count(), 3);
  EXPECT_EQ(cut.rows_of(2), 3);
  EXPECT_EQ(cut.height_of(2), few_columns);
  const ops::row_blocks wide(10000, 1000, 1000);
  EXPECT_EQ(wide.block, 4000);
  EXPECT_EQ(ops::row_blocks(3, 1000, 1000).height_of(0), 3);
  EXPECT_EQ(ops::row_blocks(3, 1000, 1000).rank(), 3);
}

TEST(Tsqr, HasTheTriangleOfGramSchmidt) {
  random_choices choose(2);
  for (const dtype type : float_dtypes)
    for (const dims& shape : {dims{30, 6}, dims{many_rows, few_columns}}) {
      const tensor a = random_numbers(choose, type, shape);
      const oracle_matrix wanted = gram_schmidt(matrices_of(a)[0]);
      const tensor r = tsqr_r(a);
      EXPECT_LE(distance(matrices_of(r)[0], wanted), limit_for(a) * wanted.largest())
          << to_string(shape) << name(type);
      EXPECT_TRUE(equal_bits(r, tsqr(a).r));
    }
}

// One column has its length as triangle. Of nine blocks, the last one moves up unchanged.
TEST(Tsqr, OfManyBlocksReducesAllOfThem) {
  for (const index_t whole : {8, 9}) {
    const index_t rows = whole * (index_t{1} << 18) + 5;
    const tensor a = eval(astype(arange(rows) % 7 - 3, dtype::float64).expand_dims(1));
    long double squares = 0;
    for (index_t i = 0; i < rows; ++i) {
      const auto element = static_cast<long double>(i % 7 - 3);
      squares += element * element;
    }
    const tsqr_result found = tsqr(a);
    const long double length = std::sqrt(squares);
    EXPECT_LE(std::abs(matrices_of(found.r)[0](0, 0).real() / length - 1), 1e-12L);
    const auto q = elements_of<double>(eval(found.q));
    long double furthest = 0;
    for (index_t i = 0; i < rows; ++i)
      furthest = std::max(furthest, std::abs(q[static_cast<std::size_t>(i)] * length -
                                             static_cast<long double>(i % 7 - 3)));
    EXPECT_LE(furthest, 1e-11L);
  }
}

TEST(Tsqr, OfDependentColumnsIsOrthonormalAllTheSame) {
  random_choices choose(3);
  for (const index_t rows : {index_t{50}, many_rows}) {
    const tensor a = random_numbers(choose, dtype::float64, {rows, few_columns}).contiguous();
    eval_into(a.select(1, 3), expr(a.select(1, 0)) * 2);
    eval_into(a.select(1, 6), expr(0));
    expect_factors(a, tsqr(a), "dependent columns");
  }
  expect_factors(tensor::zeros({many_rows, few_columns}, dtype::float64),
                 tsqr(tensor::zeros({many_rows, few_columns}, dtype::float64)), "zeros");
}

TEST(Tsqr, OfMatricesWithoutElementsHasTheirShapes) {
  for (const dims& shape : {dims{0, 3}, dims{3, 0}, dims{0, 0}}) {
    const tsqr_result found = tsqr(tensor::zeros(shape, dtype::float32));
    EXPECT_EQ(found.q.shape(), (dims{shape[0], 0}));
    EXPECT_EQ(found.r.shape(), (dims{0, shape[1]}));
    EXPECT_EQ(tsqr_r(tensor::zeros(shape, dtype::float32)).shape(), (dims{0, shape[1]}));
  }
}

/// One matrix of several blocks as different operands.
class TsqrOfOneMatrix : public testing::Test {
 protected:
  void expect_same(const expr& a, const std::string& what) const {
    const tsqr_result found = tsqr(a);
    EXPECT_TRUE(equal_bits(found.r, wanted_.r)) << what;
    EXPECT_TRUE(equal_bits(eval(found.q), q_)) << what;
  }

  tensor in_a_file() const {
    const storage bytes = create_file(folder_ / "matrix", a_.size_bytes());
    const tensor made(bytes, a_.dtype(), layout(a_.shape()));
    eval_into(made, a_);
    return made;
  }

  const tensor a_ = [] {
    random_choices choose(4);
    return random_numbers(choose, dtype::float64, {many_rows, few_columns}).contiguous();
  }();
  const tsqr_result wanted_ = tsqr(a_);
  const tensor q_ = eval(wanted_.q);
  test::scratch_directory folder_;
};

// tall.1
TEST_F(TsqrOfOneMatrix, HasTheSameBitsInAnyLayout) {
  expect_same(eval(expr(a_).swapaxes(0, 1)).swapaxes(0, 1), "columns");
  expect_same(eval(expr(a_).flip()).flip(), "reversed");
  expect_same(expr(a_) * 1, "an expression");
  expect_same(in_a_file(), "a file");
  expect_same(
      std::shared_ptr<const tile_source>(std::make_shared<test::tensor_tiles>(a_, dims{5000, 3})),
      "tiles");
}

TEST_F(TsqrOfOneMatrix, HasTheSameBitsForAnyThreadsAndBudget) {
  const tensor file = in_a_file();
  for (const int threads : {1, 2, 4})
    for (const std::size_t budget :
         {std::size_t{1000}, std::size_t{5} << 20, std::size_t{1} << 30}) {
      executor on({.threads = threads, .memory_bytes = budget});
      run_on(on, [&] { expect_same(file, std::to_string(threads) + " threads"); });
    }
}

TEST_F(TsqrOfOneMatrix, MayDependOnItsReductions) {
  const expr shifted = expr(a_) + (mean(expr(a_)) - mean(expr(a_)));
  expect_same(shifted, "a reduction");
}

TEST_F(TsqrOfOneMatrix, GivesPartsOfQ) {
  for (const index_t first : {index_t{0}, block_rows - 2, many_rows - 4}) {
    const tensor rows = eval(wanted_.q.narrow(0, first, 4));
    EXPECT_TRUE(equal_bits(rows, q_.narrow(0, first, 4))) << first;
  }
  EXPECT_TRUE(equal_bits(eval(wanted_.q.select(1, 2)), q_.select(1, 2)));
  EXPECT_TRUE(equal_bits(eval(wanted_.q * 2), eval(expr(q_) * 2)));
}

TEST_F(TsqrOfOneMatrix, WritesQIntoFilesAndTiles) {
  const storage bytes = create_file(folder_ / "q", q_.size_bytes());
  const tensor file(bytes, q_.dtype(), layout(q_.shape()));
  eval_into(file, wanted_.q);
  EXPECT_TRUE(equal_bits(file, q_));
  const tensor kept = tensor::zeros(q_.shape(), q_.dtype());
  test::tensor_tiles tiles(kept, {7000, 5});
  eval_into(tiles, wanted_.q);
  EXPECT_TRUE(equal_bits(kept, q_));
}

// nested.1: the loads of factors of factors run on one stack, so no more than two of them nest. The
// factor of an orthonormal matrix is that matrix.
TEST(TsqrOfLazyFactors, NeedsLittleStackHoweverManyThereAre) {
  random_choices choose(5);
  const tensor a = random_numbers(choose, dtype::float64, {400, 3});
  const tsqr_result first = tsqr(a);
  executor alone({.threads = 1});
  tensor q;
  test::run_on_a_stack_of(4 * test::stated_stack_bytes, [&] {
    const executor::scope within(alone);
    expr last = first.q;
    for (int k = 0; k < 100; ++k) last = tsqr(last).q;
    q = eval(last);
  });
  expect_factors(a, {q, first.r}, "a hundred factors");
}

TEST(TsqrOfLazyFactors, ReadsTheOperandThroughTwoOfThem) {
  const auto source = std::make_shared<test::counted_tiles>(300);
  const expr a =
      astype(expr(std::shared_ptr<const tile_source>(source)), dtype::float64).expand_dims(1);
  const auto loads_of = [&](const expr& value) {
    const int before = source->loads;
    eval(value);
    return source->loads - before;
  };
  const expr q = tsqr(a).q, of_q = tsqr(q).q, of_both = tsqr(of_q).q;
  EXPECT_GT(loads_of(of_q), 0);
  EXPECT_GT(loads_of(rolling_mean(q, 3, 0)), 0);
  EXPECT_EQ(loads_of(of_both), 0);
  const expr held = eval(of_q);
  EXPECT_TRUE(equal_bits(eval(of_both), eval(tsqr(held).q)));
  EXPECT_TRUE(equal_bits(eval(rolling_mean(of_q, 3, 0)), eval(rolling_mean(held, 3, 0))));
}

TEST(Tsqr, SpreadsWhatIsNotFinite) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    const tensor a = tensor::ones({many_rows, few_columns}, dtype::float64);
    eval_into(a.narrow(0, block_rows + 1, 1).narrow(1, 2, 1), bad);
    const oracle_matrix r = matrices_of(tsqr_r(a))[0];
    EXPECT_FALSE(std::isfinite(r(2, 2).real()));
    EXPECT_TRUE(std::isfinite(r(0, 0).real()));
    EXPECT_NO_THROW(eval(tsqr(a).q));
  }
}

TEST(Tsqr, ComputesIntegersAndHalvesInWiderTypes) {
  const tensor whole = tensor::of<std::int32_t>({{3, 1}, {4, 2}, {0, 2}});
  const tsqr_result found = tsqr(whole);
  EXPECT_EQ(found.q.dtype(), dtype::float64);
  EXPECT_LE(std::abs(matrices_of(found.r)[0](0, 0) - number(5)), 1e-14L);
  const tsqr_result half = tsqr(astype(expr(whole), dtype::float16));
  EXPECT_EQ(half.q.dtype(), dtype::float16);
  EXPECT_EQ(half.r.dtype(), dtype::float16);
  EXPECT_EQ(matrices_of(half.r)[0](0, 0), number(5));
}

TEST(Tsqr, RefusesWhatIsNotOneMatrix) {
  for (const dims& shape : {dims{3}, dims{2, 3, 3}, dims{}}) {
    EXPECT_EQ(code_of([&] { tsqr(tensor::zeros(shape, dtype::float64)); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { tsqr_r(tensor::zeros(shape, dtype::float64)); }),
              errc::invalid_argument);
  }
  EXPECT_EQ(code_of([&] {
              tsqr(tensor::zeros({3, 2}, dtype::float8_e5m2));
            }),
            errc::invalid_argument);
}

TEST(Tsqr, IsCancelled) {
  executor on({.threads = 2});
  const executor::scope within(on);
  const tensor a = tensor::ones({100, 3}, dtype::float64);
  on.cancel();
  EXPECT_EQ(code_of([&] { tsqr_r(a); }), errc::cancelled);
}

}  // namespace
}  // namespace shale
