// Tests eigenvalues and singular values by what defines them, in long double.
#include "shale/spectra.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "shale/creation.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "support/failures.hpp"
#include "support/oracle_matrices.hpp"

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
const dims square_shapes[] = {{1, 1},   {2, 2}, {5, 5},    {2, 3, 4, 4},
                              {40, 40}, {0, 0}, {2, 0, 0}, {0, 2, 2}};

long double limit_for(const tensor& a) {
  return 40 * epsilon_of(a.dtype()) * static_cast<long double>(a.shape(-1) + a.shape(-2) + 1);
}

// A diagonal matrix of one row of a tensor's numbers.
oracle_matrix diagonal_of(const std::vector<number>& values, std::size_t row, index_t n) {
  oracle_matrix made(n, n);
  for (index_t i = 0; i < n; ++i)
    made(i, i) = values[row * static_cast<std::size_t>(n) + static_cast<std::size_t>(i)];
  return made;
}

TEST(Eigh, VectorsAreOrthonormalAndValuesAscend) {
  random_choices choose(1);
  for (const dtype type : float_dtypes)
    for (const dims& shape : square_shapes)
      for (const triangle part : {triangle::lower, triangle::upper}) {
        const std::string what = to_string(shape) + " " + std::string(name(type));
        const tensor a = random_numbers(choose, type, shape);
        const eigh_result found = eigh(a, part);
        EXPECT_EQ(found.eigenvectors.dtype(), type);
        EXPECT_NE(kind(found.eigenvalues.dtype()), dtype_kind::complex);
        const auto values = numbers_of(found.eigenvalues);
        const auto alone = numbers_of(eigvalsh(a, part));
        ASSERT_EQ(alone.size(), values.size());
        for (std::size_t i = 0; i < values.size(); ++i)
          EXPECT_LE(std::abs(values[i] - alone[i]), limit_for(a)) << what;
        const auto as = matrices_of(a), vectors = matrices_of(found.eigenvectors);
        const index_t n = shape.back();
        for (std::size_t i = 0; i < as.size(); ++i) {
          // Only one triangle counts.
          oracle_matrix full = part == triangle::lower ? as[i].lower() : as[i].upper();
          const oracle_matrix mirrored = full.adjoint();
          for (index_t r = 0; r < n; ++r)
            for (index_t c = 0; c < n; ++c) {
              if (r == c) full(r, c) = full(r, c).real();
              else if (part == triangle::lower ? c > r : c < r) full(r, c) = mirrored(r, c);
            }
          const oracle_matrix lambda = diagonal_of(values, i, n);
          EXPECT_LE(distance(full * vectors[i], vectors[i] * lambda), limit_for(a)) << what;
          EXPECT_LE(distance(vectors[i].adjoint() * vectors[i], oracle_matrix::identity(n)),
                    limit_for(a));
          for (index_t k = 1; k < n; ++k)
            EXPECT_LE(lambda(k - 1, k - 1).real(), lambda(k, k).real()) << what;
        }
      }
}

TEST(Eig, VectorsTimesValuesAreTheirImages) {
  random_choices choose(2);
  for (const dtype type : float_dtypes)
    for (const dims& shape : square_shapes) {
      const std::string what = to_string(shape) + " " + std::string(name(type));
      const tensor a = random_numbers(choose, type, shape);
      const eig_result found = eig(a);
      EXPECT_EQ(kind(found.eigenvalues.dtype()), dtype_kind::complex);
      EXPECT_EQ(found.eigenvectors.shape(), shape);
      const auto values = numbers_of(found.eigenvalues);
      const auto as = matrices_of(a), vectors = matrices_of(found.eigenvectors);
      const auto alone = numbers_of(eigvals(a));
      ASSERT_EQ(alone.size(), values.size());
      const index_t n = shape.back();
      for (std::size_t i = 0; i < as.size(); ++i) {
        const oracle_matrix lambda = diagonal_of(values, i, n);
        EXPECT_LE(distance(as[i] * vectors[i], vectors[i] * lambda),
                  limit_for(a) * (1 + lambda.largest()))
            << what;
        number trace = 0, total = 0, total_alone = 0;
        for (index_t k = 0; k < n; ++k) {
          long double length = 0;
          for (index_t r = 0; r < n; ++r) length += std::norm(vectors[i](r, k));
          EXPECT_NEAR(static_cast<double>(length), 1, 1e-4) << what;
          trace += as[i](k, k);
          total += lambda(k, k);
          total_alone += alone[i * static_cast<std::size_t>(n) + static_cast<std::size_t>(k)];
        }
        EXPECT_LE(std::abs(trace - total), limit_for(a) * (1 + lambda.largest())) << what;
        EXPECT_LE(std::abs(trace - total_alone), limit_for(a) * (1 + lambda.largest())) << what;
      }
    }
}

TEST(Svd, FactorsAreOrthonormalAndValuesDescend) {
  random_choices choose(3);
  for (const dtype type : float_dtypes)
    for (const dims& shape :
         {dims{1, 1}, dims{5, 5}, dims{6, 3}, dims{3, 6}, dims{2, 3, 4, 2}, dims{40, 30},
          dims{20, 45}, dims{0, 3}, dims{3, 0}, dims{0, 0}, dims{2, 0, 3}, dims{0, 3, 2}})
      for (const svd_vectors wanted : {svd_vectors::full, svd_vectors::reduced}) {
        const std::string what = to_string(shape) + " " + std::string(name(type));
        const tensor a = random_numbers(choose, type, shape);
        const svd_result found = svd(a, wanted);
        const index_t m = a.shape(-2), n = a.shape(-1), less = std::min(m, n);
        const bool full = wanted == svd_vectors::full;
        EXPECT_EQ(found.u.shape(-1), full ? m : less) << what;
        EXPECT_EQ(found.vh.shape(-2), full ? n : less) << what;
        const auto values = numbers_of(found.s), alone = numbers_of(svdvals(a));
        ASSERT_EQ(values.size(), alone.size());
        for (std::size_t i = 0; i < values.size(); ++i)
          EXPECT_LE(std::abs(values[i] - alone[i]), limit_for(a)) << what;
        const auto as = matrices_of(a), us = matrices_of(found.u), vhs = matrices_of(found.vh);
        for (std::size_t i = 0; i < as.size(); ++i) {
          oracle_matrix sigma(us[i].columns, vhs[i].rows);
          for (index_t k = 0; k < less; ++k) {
            sigma(k, k) = values[i * static_cast<std::size_t>(less) + static_cast<std::size_t>(k)];
            EXPECT_GE(sigma(k, k).real(), 0);
            if (k > 0) {
              EXPECT_LE(sigma(k, k).real(), sigma(k - 1, k - 1).real());
            }
          }
          EXPECT_LE(distance(us[i] * sigma * vhs[i], as[i]), limit_for(a)) << what;
          EXPECT_LE(distance(us[i].adjoint() * us[i], oracle_matrix::identity(us[i].columns)),
                    limit_for(a));
          EXPECT_LE(distance(vhs[i] * vhs[i].adjoint(), oracle_matrix::identity(vhs[i].rows)),
                    limit_for(a));
        }
      }
}

TEST(Spectra, RefuseElementsThatAreNotFinite) {
  for (const double bad : {nan, infinity, -infinity})
    for (const dtype type : float_dtypes) {
      const tensor a = eval(astype(eye(4) + zeros({3, 4, 4}), type));
      eval_into(a.index({1, 2, 0}), bad);
      for (const auto& text :
           {text_of([&] { eigh(a); }), text_of([&] { eigvalsh(a); }), text_of([&] { eig(a); }),
            text_of([&] { eigvals(a); }), text_of([&] { svd(a); }), text_of([&] { svdvals(a); })}) {
        EXPECT_NE(text.find("NaN or infinite [invalid_argument]"), std::string::npos) << text;
        EXPECT_NE(text.find("matrix (1,) of the batch (3,)"), std::string::npos) << text;
      }
      // The other triangle is not read.
      EXPECT_NO_THROW(eigh(a, triangle::upper));
    }
}

TEST(Spectra, ComputeIntegersAndHalvesInWiderTypes) {
  const tensor whole = tensor::of<std::int32_t>({{2, 1}, {1, 2}});
  EXPECT_EQ(eigvalsh(whole).dtype(), dtype::float64);
  EXPECT_LE(std::abs(numbers_of(eigvalsh(whole))[1] - number(3)), 1e-14L);
  const tensor half = eval(astype(expr(whole), dtype::float16));
  EXPECT_EQ(svd(half).u.dtype(), dtype::float16);
  EXPECT_EQ(svdvals(half).dtype(), dtype::float16);
  EXPECT_EQ(numbers_of(svdvals(half))[0], number(3));
  EXPECT_EQ(eigvals(half).dtype(), dtype::complex64);
  EXPECT_EQ(eig(whole).eigenvectors.dtype(), dtype::complex128);
}

TEST(Spectra, RefuseShapesAndSizesThatLapackDoesNotTake) {
  const tensor wide = tensor::ones({2, 3}, dtype::float64);
  EXPECT_EQ(code_of([&] { eigh(wide); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { eigvals(wide); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { svd(wide.select(0, 0)); }), errc::invalid_argument);
  // The work memory has more elements than LAPACK can count.
  memory_pool small({.limit_bytes = 1 << 20});
  executor on({.threads = 1, .pool = &small});
  const executor::scope within(on);
  const tensor large = tensor::ones({1, 1}, dtype::float64).broadcast_to({40000, 40000});
  EXPECT_NE(code_of([&] { svd(large); }), errc{});
  EXPECT_NE(code_of([&] { eigh(large); }), errc{});
}

TEST(Spectra, HaveTheSameBitsForAnyNumberOfThreads) {
  random_choices choose(4);
  const tensor a = random_numbers(choose, dtype::float64, {30, 7, 5});
  executor one({.threads = 1}), four({.threads = 4});
  std::vector<svd_result> found;
  for (executor* on : {&one, &four}) {
    const executor::scope within(*on);
    found.push_back(svd(a));
  }
  EXPECT_EQ(test::bytes_of(found[0].u.storage()), test::bytes_of(found[1].u.storage()));
  EXPECT_EQ(test::bytes_of(found[0].vh.storage()), test::bytes_of(found[1].vh.storage()));
}

}  // namespace
}  // namespace shale
