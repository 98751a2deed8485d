// Tests singular values and principal components by random projection: of matrices whose spectrum
// is known, and against rotations of columns (Jacobi) in long double.
#include "shale/low_rank.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <memory>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "shale/creation.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"
#include "shale/evaluate.hpp"
#include "shale/executor.hpp"
#include "shale/mapped_file.hpp"
#include "shale/tile_source.hpp"
#include "support/failures.hpp"
#include "support/oracle_matrices.hpp"
#include "support/run_on.hpp"
#include "support/scratch_directory.hpp"
#include "support/tensor_tiles.hpp"

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
using test::run_on;
using test::set_matrices;
using test::text_of;

constexpr dtype float_dtypes[] = {dtype::float32, dtype::float64, dtype::complex64,
                                  dtype::complex128};

/// Element i of vector k of an orthonormal basis of n vectors: cosines. Those of vector 0 are
/// equal, so the sum of every other one is 0.
long double cosine(index_t n, index_t k, index_t i) {
  const auto count = static_cast<long double>(n);
  const long double angle = std::numbers::pi_v<long double> * static_cast<long double>(k) *
                            (static_cast<long double>(i) + 0.5L) / count;
  return std::sqrt((k == 0 ? 1 : 2) / count) * std::cos(angle);
}

/// The matrix whose singular values are `s`, and whose vectors are cosines from number 1 on.
oracle_matrix with_spectrum(index_t rows, index_t columns, const std::vector<long double>& s) {
  oracle_matrix made(rows, columns);
  for (std::size_t k = 0; k < s.size(); ++k) {
    const auto vector = static_cast<index_t>(k) + 1;
    std::vector<long double> right(static_cast<std::size_t>(columns));
    for (index_t j = 0; j < columns; ++j)
      right[static_cast<std::size_t>(j)] = cosine(columns, vector, j);
    for (index_t i = 0; i < rows; ++i) {
      const long double left = s[k] * cosine(rows, vector, i);
      for (index_t j = 0; j < columns; ++j) made(i, j) += left * right[static_cast<std::size_t>(j)];
    }
  }
  return made;
}

tensor rounded_to(dtype type, const oracle_matrix& matrix) {
  const tensor made = tensor::zeros({matrix.rows, matrix.columns}, type);
  set_matrices(made, {matrix});
  return made;
}

/// Rotates two columns so that they are orthogonal. Returns whether they were not.
bool rotate(oracle_matrix& a, index_t p, index_t q) {
  long double squares_p = 0, squares_q = 0;
  number product = 0;
  for (index_t i = 0; i < a.rows; ++i) {
    squares_p += std::norm(a(i, p));
    squares_q += std::norm(a(i, q));
    product += std::conj(a(i, p)) * a(i, q);
  }
  const long double size = std::abs(product);
  if (size <= 1e-18L * std::sqrt(squares_p * squares_q)) return false;
  const long double zeta = (squares_q - squares_p) / (2 * size);
  const long double tangent = (zeta < 0 ? -1 : 1) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
  const long double c = 1 / std::sqrt(1 + tangent * tangent), s = c * tangent;
  const number phase = std::conj(product) / size;
  for (index_t i = 0; i < a.rows; ++i) {
    const number left = a(i, p), right = phase * a(i, q);
    a(i, p) = c * left - s * right;
    a(i, q) = s * left + c * right;
  }
  return true;
}

/// The singular values, descending, by one-sided Jacobi rotations.
std::vector<long double> jacobi_values(oracle_matrix a) {
  if (a.columns > a.rows) a = a.adjoint();
  bool is_turned = true;
  for (int sweep = 0; is_turned && sweep < 60; ++sweep) {
    is_turned = false;
    for (index_t p = 0; p < a.columns; ++p)
      for (index_t q = p + 1; q < a.columns; ++q) is_turned = rotate(a, p, q) || is_turned;
  }
  std::vector<long double> values;
  values.reserve(static_cast<std::size_t>(a.columns));
  for (index_t j = 0; j < a.columns; ++j) {
    long double squares = 0;
    for (index_t i = 0; i < a.rows; ++i) squares += std::norm(a(i, j));
    values.push_back(std::sqrt(squares));
  }
  std::sort(values.rbegin(), values.rend());
  return values;
}

/// The factors in memory, as matrices of the oracle.
struct held_factors {
  oracle_matrix u, vh;
  std::vector<number> s;

  explicit held_factors(const lowrank_result& found)
      : u(matrices_of(eval(found.u))[0]),
        vh(matrices_of(eval(found.vh))[0]),
        s(numbers_of(found.s)) {}

  oracle_matrix product() const {
    oracle_matrix scaled = u;
    for (index_t i = 0; i < u.rows; ++i)
      for (index_t k = 0; k < u.columns; ++k) scaled(i, k) *= s[static_cast<std::size_t>(k)];
    return scaled * vh;
  }

  void expect_orthonormal(long double limit, const std::string& what) const {
    EXPECT_LE(distance(u.adjoint() * u, oracle_matrix::identity(u.columns)), limit) << what;
    EXPECT_LE(distance(vh * vh.adjoint(), oracle_matrix::identity(vh.rows)), limit) << what;
  }
};

/// The first element of the largest magnitude of each row is real and positive, up to elements that
/// are as large up to rounding.
void expect_signs(const oracle_matrix& rows, long double limit) {
  for (index_t k = 0; k < rows.rows; ++k) {
    long double most = 0;
    for (index_t i = 0; i < rows.columns; ++i) most = std::max(most, std::abs(rows(k, i)));
    bool is_met = false;
    for (index_t i = 0; i < rows.columns; ++i)
      is_met = is_met || (rows(k, i).imag() == 0 && rows(k, i).real() >= most - limit);
    EXPECT_TRUE(is_met) << k;
  }
}

long double limit_for(dtype type, index_t rows, index_t columns) {
  return 50 * epsilon_of(type) *
         (static_cast<long double>(columns) + std::sqrt(static_cast<long double>(rows)));
}

lowrank_result with_seed(const expr& a, index_t rank, const lowrank_options& options = {}) {
  generator source(7);
  return svd_lowrank(source, a, rank, options);
}

TEST(SvdLowrank, OfAsManyVectorsAsColumnsIsTheWholeDecomposition) {
  random_choices choose(1);
  for (const dtype type : float_dtypes)
    for (const auto& [shape, rank] : {std::pair<dims, index_t>{{1, 1}, 1},
                                      {{6, 3}, 3},
                                      {{3, 6}, 3},
                                      {{30, 8}, 5},
                                      {{8, 30}, 8},
                                      {{300, 12}, 4},
                                      {{2, 100}, 2},
                                      {{5, 5}, 1}}) {
      const std::string what = to_string(shape) + " " + std::string(name(type));
      const tensor a = random_numbers(choose, type, shape);
      const oracle_matrix whole = matrices_of(a)[0];
      const auto wanted = jacobi_values(whole);
      const lowrank_result found = with_seed(a, rank);
      EXPECT_EQ(found.u.dtype(), type);
      EXPECT_EQ(found.vh.dtype(), type);
      const held_factors held(found);
      const long double limit = limit_for(type, shape[0], shape[1]);
      held.expect_orthonormal(limit, what);
      ASSERT_EQ(static_cast<index_t>(held.s.size()), rank) << what;
      for (std::size_t k = 0; k < held.s.size(); ++k)
        EXPECT_LE(std::abs(held.s[k] - wanted[k]), limit * wanted[0]) << what << " " << k;
      if (rank == std::min(shape[0], shape[1])) {
        EXPECT_LE(distance(held.product(), whole), limit * wanted[0]) << what;
      }
    }
}

// tall.2: several blocks, of which the last one is short.
TEST(SvdLowrank, FindsAKnownSpectrum) {
  const std::vector<long double> spectrum = {900, 300, 100, 40, 9, 2, 1, 0.5L, 0.25L, 0.125L};
  for (const dtype type : float_dtypes)
    for (const dims& shape :
         {dims{300, 40}, dims{40, 300}, dims{2 * 4096 + 3, 64}, dims{30, 700}}) {
      const std::string what = to_string(shape) + " " + std::string(name(type));
      const tensor a = rounded_to(type, with_spectrum(shape[0], shape[1], spectrum));
      const held_factors held(with_seed(a, 5));
      const long double limit = limit_for(type, shape[0], shape[1]);
      held.expect_orthonormal(limit, what);
      for (std::size_t k = 0; k < 5; ++k) {
        EXPECT_LE(std::abs(held.s[k] - spectrum[k]), limit * spectrum[0]) << what << " " << k;
        EXPECT_EQ(held.s[k].imag(), 0);
      }
      // What is left out is the sixth value.
      EXPECT_LE(distance(held.product(), matrices_of(a)[0]), spectrum[5] + limit * spectrum[0])
          << what;
      const bool by_columns = shape[1] > 16 * shape[0];
      expect_signs(by_columns ? held.u.transposed() : held.vh, limit);
    }
}

// Without power iterations, a slowly falling spectrum is found badly; with them, well.
TEST(SvdLowrank, IterationsSharpenASlowSpectrum) {
  std::vector<long double> spectrum;
  spectrum.reserve(60);
  for (int k = 0; k < 60; ++k) spectrum.push_back(100 / (1 + 0.1L * k));
  const tensor a = rounded_to(dtype::float64, with_spectrum(400, 80, spectrum));
  const auto furthest = [&](index_t iterations) {
    long double most = 0;
    const auto s = numbers_of(with_seed(a, 6, {.oversampling = 4, .iterations = iterations}).s);
    for (std::size_t k = 0; k < s.size(); ++k) {
      EXPECT_LE(s[k].real(), spectrum[k] * (1 + 1e-12L));
      most = std::max(most, spectrum[k] - s[k].real());
    }
    return most;
  };
  EXPECT_GT(furthest(0), 1);
  EXPECT_LT(furthest(40), 0.01L);
}

// Values far below the first one are found too, because products are made orthonormal each time.
TEST(SvdLowrank, FindsSmallValuesBesideLargeOnes) {
  const std::vector<long double> spectrum = {1e6L, 1, 1e-3L, 1e-7L};
  const tensor a = rounded_to(dtype::float64, with_spectrum(200, 60, spectrum));
  const auto s = numbers_of(with_seed(a, 4, {.oversampling = 2, .iterations = 6}).s);
  for (std::size_t k = 0; k < spectrum.size(); ++k)
    EXPECT_LE(std::abs(s[k].real() - spectrum[k]), 3e-8L) << k;
}

TEST(SvdLowrank, OfZerosIsZero) {
  const held_factors held(with_seed(tensor::zeros({300, 40}, dtype::float64), 3));
  for (const number& value : held.s) EXPECT_EQ(value, number(0));
  held.expect_orthonormal(1e-13L, "zeros");
}

TEST(SvdLowrank, OfNoValuesHasTheirShapes) {
  for (const dims& shape : {dims{0, 3}, dims{3, 0}, dims{0, 0}, dims{4, 5}}) {
    const lowrank_result found = with_seed(tensor::zeros(shape, dtype::complex64), 0);
    EXPECT_EQ(found.u.shape(), (dims{shape[0], 0}));
    EXPECT_EQ(found.s.shape(), dims{0});
    EXPECT_EQ(found.s.dtype(), dtype::float32);
    EXPECT_EQ(found.vh.shape(), (dims{0, shape[1]}));
  }
}

/// One matrix of three blocks as different operands.
class LowRankOfOneMatrix : public testing::Test {
 protected:
  void expect_same(const expr& a, const std::string& what) const {
    const lowrank_result found = with_seed(a, 5);
    EXPECT_TRUE(equal_bits(found.s, wanted_.s)) << what;
    EXPECT_TRUE(equal_bits(eval(found.u), u_)) << what;
    EXPECT_TRUE(equal_bits(eval(found.vh), vh_)) << what;
  }

  void expect_same_components(const expr& a) const {
    generator source(7);
    const pca_result parts = pca(source, a, 5);
    EXPECT_TRUE(equal_bits(parts.components, parts_.components));
    EXPECT_TRUE(equal_bits(parts.explained_variance, parts_.explained_variance));
  }

  const tensor a_ = [] {
    random_choices choose(2);
    return random_numbers(choose, dtype::float64, {2 * 4096 + 3, 64}).contiguous();
  }();
  const lowrank_result wanted_ = with_seed(a_, 5);
  const tensor u_ = eval(wanted_.u), vh_ = eval(wanted_.vh);
  const pca_result parts_ = [this] {
    generator source(7);
    return pca(source, a_, 5);
  }();
};

TEST_F(LowRankOfOneMatrix, HasTheSameBitsForAnyThreadsBudgetAndLayout) {
  const test::scratch_directory folder;
  const storage bytes = create_file(folder / "matrix", a_.size_bytes());
  const tensor file(bytes, a_.dtype(), layout(a_.shape()));
  eval_into(file, a_);
  for (const int threads : {1, 2, 4})
    for (const std::size_t budget : {std::size_t{1000}, std::size_t{1} << 30}) {
      executor on({.threads = threads, .memory_bytes = budget});
      run_on(on, [&] {
        expect_same(file, std::to_string(threads) + " threads");
        expect_same_components(file);
      });
    }
  expect_same(expr(a_) * 1, "an expression");
  expect_same(eval(expr(a_).swapaxes(0, 1)).swapaxes(0, 1), "columns");
  expect_same(
      std::shared_ptr<const tile_source>(std::make_shared<test::tensor_tiles>(a_, dims{1000, 50})),
      "tiles");
}

// With many more columns than rows, columns are read as these rows are.
TEST_F(LowRankOfOneMatrix, IsThatOfItsTranspose) {
  const lowrank_result found = with_seed(expr(a_).swapaxes(0, 1), 5);
  EXPECT_TRUE(equal_bits(found.s, wanted_.s));
  EXPECT_TRUE(equal_bits(eval(found.u), vh_.swapaxes(0, 1)));
  EXPECT_TRUE(equal_bits(eval(found.vh), u_.swapaxes(0, 1)));
}

TEST(SvdLowrank, AdvancesTheGeneratorByWhatIsDrawn) {
  const tensor a = tensor::ones({200, 40}, dtype::float64);
  generator source(3, 100);
  svd_lowrank(source, a, 5);
  EXPECT_EQ(source, generator(3, 100 + 40 * 15));
  svd_lowrank(source, astype(expr(a), dtype::complex128), 5, {.oversampling = 1});
  EXPECT_EQ(source, generator(3, 100 + 40 * 15 + 2 * 40 * 6));
  const generator before = source;
  svd_lowrank(source, a, 30);  // exact
  EXPECT_EQ(code_of([&] { svd_lowrank(source, a, 41); }), errc::invalid_argument);
  const tensor bad = tensor::full({200, 40}, std::nan(""), dtype::float64);
  EXPECT_EQ(code_of([&] { svd_lowrank(source, bad, 5); }), errc::invalid_argument);
  EXPECT_EQ(source, before);
}

TEST(SvdLowrank, RefusesElementsThatAreNotFinite) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity()})
    for (const index_t rank : {5, 40}) {
      const tensor a = tensor::ones({200, 40}, dtype::float64);
      eval_into(a.narrow(0, 150, 1).narrow(1, 39, 1), bad);
      const std::string text = text_of([&] { with_seed(a, rank); });
      EXPECT_NE(text.find("svd_lowrank: an element is NaN or infinite [invalid_argument]"),
                std::string::npos)
          << text;
      EXPECT_NE(text.find("rows 0 to 199"), std::string::npos) << text;
      generator source(1);
      EXPECT_EQ(code_of([&] { pca(source, a, rank); }), errc::invalid_argument);
    }
}

TEST(SvdLowrank, RefusesProductsThatOverflow) {
  const tensor a = tensor::full({200, 40}, 3e38, dtype::float32);
  const std::string text = text_of([&] { with_seed(a, 5); });
  EXPECT_NE(text.find("products overflow"), std::string::npos) << text;
}

TEST(SvdLowrank, RefusesWhatCannotBeDecomposed) {
  const tensor a = tensor::ones({20, 10}, dtype::float64);
  EXPECT_EQ(code_of([&] { with_seed(a, 11); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { with_seed(a, -1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { with_seed(a, 1, {.oversampling = -1}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { with_seed(a, 1, {.iterations = -1}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { with_seed(a.select(0, 0), 1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { with_seed(a.expand_dims(0), 1); }), errc::invalid_argument);
  EXPECT_NO_THROW(with_seed(a, 1, {.oversampling = std::numeric_limits<index_t>::max()}));  // exact
}

TEST(SvdLowrank, ComputesIntegersAndHalvesInWiderTypes) {
  const tensor whole = tensor::of<std::int32_t>({{3, 0}, {0, 4}, {0, 0}});
  const lowrank_result found = with_seed(whole, 2);
  EXPECT_EQ(found.s.dtype(), dtype::float64);
  EXPECT_LE(std::abs(numbers_of(found.s)[0] - number(4)), 1e-14L);
  const lowrank_result half = with_seed(astype(expr(whole), dtype::float16), 2);
  EXPECT_EQ(half.u.dtype(), dtype::float16);
  EXPECT_EQ(half.s.dtype(), dtype::float16);
  EXPECT_EQ(half.vh.dtype(), dtype::float16);
  EXPECT_EQ(numbers_of(half.s)[1], number(3));
}

// ---- principal components -----------------------------------------------------------------------

/// Samples with known components: cosines of the rows have the mean 0.
tensor samples_of(dtype type, index_t rows, index_t columns, const std::vector<long double>& s,
                  long double mean_step) {
  oracle_matrix made = with_spectrum(rows, columns, s);
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j) made(i, j) += mean_step * static_cast<long double>(j);
  return rounded_to(type, made);
}

TEST(Pca, FindsKnownComponents) {
  const std::vector<long double> spectrum = {90, 40, 10, 4, 1};
  for (const dtype type : float_dtypes)
    for (const dims& shape : {dims{300, 40}, dims{2 * 4096 + 3, 64}, dims{30, 700}, dims{500, 9}}) {
      SCOPED_TRACE(to_string(shape) + " " + std::string(name(type)));
      const tensor samples = samples_of(type, shape[0], shape[1], spectrum, 0.5L);
      generator source(5);
      const pca_result found = pca(source, samples, 3);
      // Elements of the samples are rounded.
      const long double limit =
          limit_for(type, shape[0], shape[1]) * (spectrum[0] + static_cast<long double>(shape[1]));
      const auto mean = numbers_of(found.mean), s = numbers_of(found.singular_values),
                 variance = numbers_of(found.explained_variance),
                 ratio = numbers_of(found.explained_variance_ratio);
      for (index_t j = 0; j < shape[1]; ++j)
        EXPECT_LE(std::abs(mean[static_cast<std::size_t>(j)] - 0.5L * static_cast<long double>(j)),
                  limit);
      const oracle_matrix components = matrices_of(found.components)[0];
      ASSERT_EQ(components.rows, 3);
      expect_signs(components, limit);
      const auto divisor = static_cast<long double>(shape[0] - 1);
      const long double total = 90 * 90 + 40 * 40 + 10 * 10 + 4 * 4 + 1;
      for (std::size_t k = 0; k < 3; ++k) {
        const long double wanted = spectrum[k] * spectrum[k];
        EXPECT_LE(std::abs(s[k] - spectrum[k]), limit) << k;
        EXPECT_LE(std::abs(variance[k] - wanted / divisor), 3 * spectrum[0] * limit / divisor) << k;
        EXPECT_LE(std::abs(ratio[k] - wanted / total), limit) << k;
        number along = 0;
        for (index_t j = 0; j < shape[1]; ++j)
          along += components(static_cast<index_t>(k), j) *
                   cosine(shape[1], static_cast<index_t>(k) + 1, j);
        EXPECT_LE(std::abs(std::abs(along) - 1), limit) << k;
      }
    }
}

TEST(Pca, OfAllComponentsExplainsAllVariance) {
  random_choices choose(3);
  const tensor samples = random_numbers(choose, dtype::float64, {200, 9});
  generator source(5);
  const pca_result found = pca(source, samples, 9);
  number total = 0;
  for (const number& share : numbers_of(found.explained_variance_ratio)) total += share;
  EXPECT_LE(std::abs(total - number(1)), 1e-12L);
  // The mean is subtracted in long double.
  oracle_matrix centred = matrices_of(samples)[0];
  for (index_t j = 0; j < 9; ++j) {
    number sum = 0;
    for (index_t i = 0; i < 200; ++i) sum += centred(i, j);
    for (index_t i = 0; i < 200; ++i) centred(i, j) -= sum / 200.0L;
  }
  const auto wanted = jacobi_values(centred);
  const auto s = numbers_of(found.singular_values);
  for (std::size_t k = 0; k < 9; ++k) EXPECT_LE(std::abs(s[k] - wanted[k]), 1e-12L);
}

// The mean is 10^8 times as large as what differs.
TEST(Pca, LosesNothingBesideALargeMean) {
  const std::vector<long double> spectrum = {9, 4};
  const tensor samples = samples_of(dtype::float64, 400, 50, spectrum, 1e7L);
  generator source(5);
  const auto s = numbers_of(pca(source, samples, 2).singular_values);
  for (std::size_t k = 0; k < 2; ++k) EXPECT_LE(std::abs(s[k] - spectrum[k]), 1e-5L) << k;
}

TEST(Pca, OfEqualSamplesExplainsNothing) {
  const tensor samples = tensor::full({50, 30}, 3, dtype::float64);
  generator source(5);
  const pca_result found = pca(source, samples, 2);
  for (const number& share : numbers_of(found.explained_variance_ratio))
    EXPECT_EQ(share, number(0));
  EXPECT_EQ(numbers_of(found.mean)[7], number(3));
}

// The squares of the singular values exceed the largest float32.
TEST(Pca, OfLargeNumbersHasTheirVariance) {
  const std::vector<long double> spectrum = {1e20L, 4e19L};
  const tensor samples = samples_of(dtype::float32, 400, 30, spectrum, 0);
  generator source(5);
  const pca_result found = pca(source, samples, 2);
  const auto variance = numbers_of(found.explained_variance),
             ratio = numbers_of(found.explained_variance_ratio);
  for (std::size_t k = 0; k < 2; ++k) {
    const long double wanted = spectrum[k] * spectrum[k];
    EXPECT_LE(std::abs(variance[k] / (wanted / 399) - number(1)), 1e-4L) << k;
    EXPECT_LE(std::abs(ratio[k] - wanted / 1.16e40L), 1e-4L) << k;
  }
}

TEST(Pca, RefusesWhatHasNoComponents) {
  generator source(5);
  const tensor one = tensor::ones({1, 4}, dtype::float64);
  EXPECT_EQ(code_of([&] { pca(source, one, 1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { pca(source, one.select(0, 0), 1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] {
              pca(source, tensor::ones({5, 4}, dtype::float64), 5);
            }),
            errc::invalid_argument);
  const pca_result none = pca(source, tensor::ones({5, 0}, dtype::float64), 0);
  EXPECT_EQ(none.components.shape(), (dims{0, 0}));
  EXPECT_EQ(none.mean.shape(), dims{0});
}

TEST(Pca, ComputesHalvesInWiderTypes) {
  const tensor samples = rounded_to(dtype::float32, with_spectrum(60, 30, {20, 5}));
  generator source(5);
  const pca_result found = pca(source, astype(expr(samples), dtype::float16), 2);
  EXPECT_EQ(found.mean.dtype(), dtype::float16);
  EXPECT_EQ(found.components.dtype(), dtype::float16);
  EXPECT_EQ(found.explained_variance.dtype(), dtype::float16);
  EXPECT_LE(std::abs(numbers_of(found.singular_values)[0] - number(20)), 0.1L);
}

}  // namespace
}  // namespace shale
