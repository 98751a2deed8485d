// Tests norms, powers and exponentials of matrices against loops in long double.
#include "shale/matrix_functions.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "shale/creation.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"
#include "shale/spectra.hpp"
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

constexpr dtype float_dtypes[] = {dtype::float32, dtype::float64, dtype::complex64,
                                  dtype::complex128};

std::vector<long double> row_sums(const oracle_matrix& a) {
  std::vector<long double> sums;
  for (index_t i = 0; i < a.rows; ++i) {
    sums.push_back(0);
    for (index_t j = 0; j < a.columns; ++j) sums.back() += std::abs(a(i, j));
  }
  return sums;
}

long double norm_of(const oracle_matrix& a, matrix_order order,
                    const std::vector<long double>& singular) {
  const auto rows = row_sums(a), columns = row_sums(a.transposed());
  long double total = 0;
  switch (order) {
    case matrix_order::frobenius:
      for (const number& value : a.elements) total += std::norm(value);
      return std::sqrt(total);
    case matrix_order::nuclear:
      for (const long double value : singular) total += value;
      return total;
    case matrix_order::largest_column_sum:
      return *std::max_element(columns.begin(), columns.end());
    case matrix_order::smallest_column_sum:
      return *std::min_element(columns.begin(), columns.end());
    case matrix_order::largest_row_sum:
      return *std::max_element(rows.begin(), rows.end());
    case matrix_order::smallest_row_sum:
      return *std::min_element(rows.begin(), rows.end());
    case matrix_order::largest_singular_value:
      return singular.front();
    default:
      return singular.back();
  }
}

TEST(MatrixNorm, IsThatOfSumsOrSingularValues) {
  random_choices choose(1);
  for (const dtype type : {dtype::float32, dtype::float64, dtype::complex128, dtype::int32})
    for (const dims& shape : {dims{3, 3}, dims{2, 4, 3}, dims{2, 1, 2, 5}})
      for (int kind = 0; kind <= static_cast<int>(matrix_order::smallest_singular_value); ++kind) {
        const auto order = static_cast<matrix_order>(kind);
        const tensor a = random_numbers(choose, type, shape);
        const tensor norms = matrix_norm(a, order);
        EXPECT_EQ(norms.shape(), dims(shape.begin(), shape.end() - 2));
        EXPECT_EQ(norms.dtype(), type == dtype::float32 ? dtype::float32 : dtype::float64);
        const tensor kept = matrix_norm(a, order, keepdims::yes);
        EXPECT_EQ(kept.shape(-1) * kept.shape(-2), 1);
        EXPECT_EQ(numbers_of(kept), numbers_of(norms));
        const auto as = matrices_of(a);
        const auto found = numbers_of(norms), values = numbers_of(svdvals(a));
        const std::size_t each = values.size() / as.size();
        for (std::size_t i = 0; i < as.size(); ++i) {
          std::vector<long double> singular;
          for (std::size_t k = 0; k < each; ++k) singular.push_back(values[i * each + k].real());
          const long double wanted = norm_of(as[i], order, singular);
          EXPECT_LE(std::abs(found[i] - wanted), 30 * epsilon_of(type) * (1 + wanted)) << kind;
        }
      }
  EXPECT_EQ(code_of([] { matrix_norm(tensor::ones({2}, dtype::float64)); }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([] {
              matrix_norm(tensor::ones({2, 2}, dtype::float64), static_cast<matrix_order>(99));
            }),
            errc::invalid_argument);
}

// The square of 300 is no float16, and 128 is no int8.
TEST(MatrixNorm, OfNarrowDtypesIsComputedInWiderOnes) {
  const tensor halves = eval(astype(tensor::of({300.f, 400.f}), dtype::float16).reshape({1, 2}));
  for (const auto order :
       {matrix_order::frobenius, matrix_order::nuclear, matrix_order::largest_singular_value}) {
    const tensor norm = matrix_norm(halves, order);
    EXPECT_EQ(norm.dtype(), dtype::float16);
    EXPECT_EQ(norm.item().as<double>(), 500);
  }
  const tensor bytes = tensor::of<std::int8_t>({{-128, 1}, {2, -128}});
  const auto norm_of_bytes = [&](matrix_order order) {
    return matrix_norm(bytes, order).item().as<double>();
  };
  EXPECT_EQ(norm_of_bytes(matrix_order::largest_column_sum), 130);
  EXPECT_EQ(norm_of_bytes(matrix_order::smallest_column_sum), 129);
  EXPECT_EQ(norm_of_bytes(matrix_order::largest_row_sum), 130);
  EXPECT_EQ(norm_of_bytes(matrix_order::smallest_row_sum), 129);
  EXPECT_EQ(norm_of_bytes(matrix_order::frobenius), std::sqrt(32773.0));  // in float64
}

TEST(MatrixPower, MultipliesAsOftenAsAsked) {
  random_choices choose(2);
  const tensor a = random_numbers(choose, dtype::int64, {2, 3, 3});
  const auto as = matrices_of(a);
  for (index_t exponent = 0; exponent <= 9; ++exponent) {
    const tensor power = matrix_power(a, exponent);
    EXPECT_EQ(power.dtype(), dtype::int64);
    const auto powers = matrices_of(power);
    for (std::size_t i = 0; i < as.size(); ++i) {
      oracle_matrix wanted = oracle_matrix::identity(3);
      for (index_t k = 0; k < exponent; ++k) wanted = wanted * as[i];
      EXPECT_EQ(distance(powers[i], wanted), 0) << exponent;
    }
  }
  const tensor inverse = matrix_power(tensor::of<double>({{2, 0}, {0, 4}}), -2);
  EXPECT_EQ(elements_of<double>(inverse), (std::vector<double>{0.25, 0, 0, 0.0625}));
  EXPECT_EQ(matrix_power(tensor::of<std::int32_t>({{2, 0}, {0, 4}}), -1).dtype(), dtype::float64);
  EXPECT_EQ(code_of([] {
              matrix_power(tensor::ones({2, 3}, dtype::float64), 2);
            }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([] {
              matrix_power(tensor::zeros({2, 2}, dtype::float64), -1);
            }),
            errc::invalid_argument);
}

// The series of the exponential of a scaled matrix, and squares of its sum.
oracle_matrix series(oracle_matrix a) {
  for (number& value : a.elements) value /= 1024;
  oracle_matrix sum = oracle_matrix::identity(a.rows), term = sum;
  for (int k = 1; k < 30; ++k) {
    term = term * a;
    for (number& value : term.elements) value /= k;
    for (std::size_t i = 0; i < sum.elements.size(); ++i) sum.elements[i] += term.elements[i];
  }
  for (int i = 0; i < 10; ++i) sum = sum * sum;
  return sum;
}

TEST(Expm, IsTheSumOfItsSeries) {
  random_choices choose(3);
  for (const dtype type : float_dtypes)
    for (const dims& shape : {dims{1, 1}, dims{4, 4}, dims{2, 3, 3}, dims{12, 12}, dims{0, 0},
                              dims{2, 0, 0}, dims{0, 2, 2}})
      for (const double scale : {0.01, 1.0, 7.0}) {
        const tensor a = random_numbers(choose, type, shape);
        eval_into(a, expr(a) * scale);
        const auto as = matrices_of(a), found = matrices_of(expm(a));
        ASSERT_EQ(found.size(), as.size());
        for (std::size_t i = 0; i < as.size(); ++i) {
          const oracle_matrix wanted = series(as[i]);
          EXPECT_LE(distance(found[i], wanted),
                    100 * epsilon_of(type) * static_cast<long double>(shape.back() + 1) *
                        (1 + static_cast<long double>(scale) * 10) * (1 + wanted.largest()))
              << to_string(shape) << " " << scale;
        }
      }
}

TEST(Expm, OfZeroIsTheIdentityAndOfNaNIsNaN) {
  EXPECT_LE(distance(matrices_of(expm(tensor::zeros({3, 3}, dtype::float64)))[0],
                     oracle_matrix::identity(3)),
            4 * epsilon_of(dtype::float64));
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const tensor a = tensor::of<double>({{0, bad}, {0, 0}});
    for (const number& value : numbers_of(expm(a))) EXPECT_TRUE(std::isnan(value.real()));
  }
  EXPECT_EQ(expm(tensor::of<std::int32_t>({{0, 1}, {0, 0}})).dtype(), dtype::float64);
}

TEST(Expm, OfANaNAnywhereIsNaN) {
  for (index_t place = 0; place < 9; ++place) {
    const tensor a = tensor::ones({3, 3}, dtype::float64);
    a.set({place / 3, place % 3}, std::numeric_limits<double>::quiet_NaN());
    for (const number& value : numbers_of(expm(a))) EXPECT_TRUE(std::isnan(value.real())) << place;
  }
}

}  // namespace
}  // namespace shale
