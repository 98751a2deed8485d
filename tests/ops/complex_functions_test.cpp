// Tests exp2, expm1 and log1p of complex numbers where simple formulas lose digits. The oracles are
// values that were computed with 500 bits (by mpmath, and rounded to double), and formulas in long
// double for arguments at which it has digits to spare.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <limits>
#include <random>
#include <vector>

#include "shale/elementwise.hpp"
#include "shale/evaluate.hpp"
#include "support/random_tensors.hpp"

namespace shale {
namespace {

using test::elements_of;
using function_of_one = expr (*)(const expr&);
using wide_complex = std::complex<long double>;

template <class T>
constexpr double epsilon = static_cast<double>(std::numeric_limits<T>::epsilon());

template <class T>
std::vector<std::complex<T>> results(function_of_one function,
                                     const std::vector<std::complex<T>>& arguments) {
  using value = std::complex<T>;
  const tensor values = tensor::empty({static_cast<index_t>(arguments.size())}, dtype_of<value>());
  std::copy(arguments.begin(), arguments.end(), values.elements<value>().begin());
  return elements_of<value>(eval(function(values)));
}

/// Expects that each part is within `epsilons` epsilons of itself.
template <class T>
void expect_parts(const std::complex<T>& got, const wide_complex& wanted, double epsilons,
                  const std::complex<T>& argument) {
  const long double most = static_cast<long double>(epsilons * epsilon<T>);
  EXPECT_LE(std::fabs(static_cast<long double>(got.real()) - wanted.real()),
            most * std::fabs(wanted.real()))
      << "real part, of " << argument;
  EXPECT_LE(std::fabs(static_cast<long double>(got.imag()) - wanted.imag()),
            most * std::fabs(wanted.imag()))
      << "imaginary part, of " << argument;
}

struct known_value {
  std::complex<double> argument;
  std::complex<double> value;
};

template <class T>
std::vector<std::complex<T>> arguments_of(const std::vector<known_value>& known) {
  std::vector<std::complex<T>> arguments;
  for (const known_value& each : known)
    arguments.emplace_back(static_cast<T>(each.argument.real()),
                           static_cast<T>(each.argument.imag()));
  return arguments;
}

template <class T>
void expect_known_parts(function_of_one function, const std::vector<known_value>& known,
                        double epsilons) {
  const std::vector<std::complex<T>> arguments = arguments_of<T>(known);
  const std::vector<std::complex<T>> got = results(function, arguments);
  for (std::size_t i = 0; i < got.size(); ++i)
    expect_parts(got[i], wide_complex(known[i].value), epsilons, arguments[i]);
}

template <class T>
void expect_known_numbers(function_of_one function, const std::vector<known_value>& known,
                          double epsilons) {
  const std::vector<std::complex<T>> arguments = arguments_of<T>(known);
  const std::vector<std::complex<T>> got = results(function, arguments);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::complex<double> wanted = known[i].value;
    EXPECT_LE(std::abs(std::complex<double>(got[i]) - wanted),
              epsilons * epsilon<T> * std::abs(wanted))
        << "of " << arguments[i];
  }
}

// All arguments are numbers of float32.
TEST(ComplexFunctions, PowersOfTwoTurnByTheExactAngle) {
  const std::vector<known_value> known{
      {{0x1p-2, 0x1p-1}, {0x1.1e55f96808772p0, 0x1.9da423a4a4efbp-2}},
      {{0x1p-2, 0x1.9p6}, {0x1.2a634df5e9c11p0, 0x1.e31801a8b3af6p-3}},
      {{-0x1.cp1, 0x1.388p13}, {0x1.3c80a3d9cafa7p-5, 0x1.459ec82a12c1p-4}},
      {{0x1p-2, 0x1.dcd65p29}, {0x1.0e183a62e63e2p0, 0x1.18eec086c453bp-1}},
      {{0x1p1, -0x1.00001p40}, {0x1.91acb7b83955bp0, -0x1.d6f721565669ep1}},
      {{0x1.8p-1, 0x1.000008p51}, {-0x1.a706969aec55cp-4, -0x1.adb9f4f2e5f0ap0}}};
  expect_known_numbers<double>(exp2, known, 3);
  expect_known_numbers<float>(exp2, known, 1);
}

TEST(ComplexFunctions, PowersAreFiniteWhereTheirMagnitudeOverflows) {
  expect_known_parts<double>(
      exp2, {{{0x1p10, 0x1p0}, {0x1.89d9ae6856a55p1023, 0x1.4725eeb25adecp1023}}}, 4);
  expect_known_numbers<float>(
      exp2, {{{0x1p7, 0x1p0}, {0x1.89d9ae6856a55p127, 0x1.4725eeb25adecp127}}}, 1);
  const auto expect_power = [](auto x) {
    using value = std::complex<decltype(x)>;
    const value argument(x, decltype(x)(0.75));
    expect_parts(results(expm1, std::vector<value>{argument})[0],
                 std::exp(wide_complex(argument.real(), argument.imag())), 4, argument);
  };
  expect_power(710.0);
  expect_power(89.0f);
}

/// Arguments whose real part is the number of the dtype next to that at which e^x cos y is 1.
const std::vector<known_value>& nearly_one_in_float32() {
  static const std::vector<known_value> known{
      {{0x1.e6da6p-2, 0x1.ccccccp-1}, {-0x1.14a8c04087c81p-28, 0x1.4299b97d5d185p0}},
      {{0x1.764e5ap-5, -0x1.333334p-2}, {-0x1.ef64ae65b1254p-30, -0x1.3cc2a524fb5d7p-2}},
      {{0x1.483a44p-8, 0x1.99999ap-4}, {-0x1.00b103affc96p-34, 0x1.9af887db38p-4}},
      {{0x1.a36ff8p-15, 0x1.47ae14p-7}, {0x1.91cbc486612d2p-41, 0x1.47b0dfdb428d8p-7}},
      {{0x1.5798eep-28, 0x1.a36e2ep-14}, {0x1.ed389a6527075p-53, 0x1.a36e2e1774ccbp-14}},
      {{0x1.197998p-41, 0x1.0c6f7ap-20}, {0x1.3e6a1ad39bbefp-71, 0x1.0c6f7a0000626p-20}}};
  return known;
}

TEST(ComplexFunctions, DifferencesFromOneKeepTheirDigits) {
  expect_known_parts<double>(
      expm1,
      {{{0x1.e6da62495359ep-2, 0x1.ccccccccccccdp-1}, {0x1.80cbd011e873bp-56, 0x1.4299ba9c2a138p0}},
       {{0x1.764e58fce14f9p-5, -0x1.3333333333333p-2},
        {-0x1.ec6b1e27ae75ap-59, -0x1.3cc2a44e29997p-2}},
       {{0x1.483a439bc8d78p-8, 0x1.999999999999ap-4}, {0x1.eb087949b1056p-69, 0x1.9af8877430b8p-4}},
       {{0x1.a36ff8d62260ep-15, 0x1.47ae147ae147bp-7},
        {-0x1.a387ed1692908p-69, 0x1.47b0e05625f97p-7}},
       {{0x1.5798ee2ca4548p-28, 0x1.a36e2eb1c432dp-14},
        {-0x1.3d4ae7852364dp-82, 0x1.a36e2ec938ff8p-14}},
       {{0x1.19799812ded4ap-41, 0x1.0c6f7a0b5ed8dp-20},
        {0x1.c42c71483467ep-98, 0x1.0c6f7a0b5f3b3p-20}}},
      4);
  expect_known_parts<double>(expm1, nearly_one_in_float32(), 4);
  expect_known_parts<float>(expm1, nearly_one_in_float32(), 1);
}

// The terms of the real part cancel four to seven bits, of the eleven that long double has to
// spare.
template <class T>
void expect_differences(double epsilons) {
  std::mt19937_64 random(17);
  const auto power_between = [&](double low, double high) {
    return std::exp2(std::uniform_real_distribution<double>(low, high)(random));
  };
  std::vector<std::complex<T>> arguments;
  for (int i = 0; i < 2000; ++i) {
    const double y = power_between(-12, 0), share = 1 + power_between(-6, -4);
    arguments.emplace_back(static_cast<T>(-std::log(std::cos(y)) * share),
                           static_cast<T>(i % 2 == 0 ? y : -y));
  }
  const std::vector<std::complex<T>> got = results(expm1, arguments);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const long double x = arguments[i].real(), y = arguments[i].imag();
    const long double half = std::sin(y / 2);
    const wide_complex wanted(std::expm1(x) * std::cos(y) - 2 * half * half,
                              std::exp(x) * std::sin(y));
    expect_parts(got[i], wanted, epsilons, arguments[i]);
  }
}

TEST(ComplexFunctions, DifferencesOfRandomNumbersKeepTheirDigits) {
  expect_differences<double>(4);
  expect_differences<float>(1);
}

TEST(ComplexFunctions, LogarithmsOfMagnitudesNearOneKeepTheirDigits) {
  const std::vector<known_value> known{
      {{-0x1.20d308p-1, -0x1.ccccccp-1}, {0x1.d7e59fc9a214p-28, -0x1.1ea935de289cfp0}},
      {{-0x1.79548p-5, 0x1.333334p-2}, {0x1.d2a71ff2b56c9p-30, 0x1.38015aaed3aa3p-2}},
      {{-0x1.197998p-41, 0x1.0c6f7ap-20}, {-0x1.3e63a83d68ef6p-71, 0x1.0c6f7a0000313p-20}},
      {{-0x1p-21, 0x1p-10}, {0x1.ffffffffffcp-44, 0x1.000002aaaa9dep-10}}};
  expect_known_parts<double>(log1p, known, 4);
  expect_known_parts<float>(log1p, known, 1);
  expect_known_parts<double>(log1p,
                             {{{-0x1.20d30a2e2f4d3p-1, -0x1.ccccccccccccdp-1},
                               {0x1.5b497f4f90848p-57, -0x1.1ea93705fa172p0}},
                              {{-0x1.79547ef156ee1p-5, 0x1.3333333333333p-2},
                               {-0x1.2543b774e35p-61, 0x1.380159e14f6ffp-2}},
                              {{-0x1.5798ee31721cfp-28, 0x1.a36e2eb1c432dp-14},
                               {0x1.182d2e3d821d8p-82, 0x1.a36e2ebd7e992p-14}},
                              {{-0x1.19799812deee7p-41, 0x1.0c6f7a0b5ed8dp-20},
                               {-0x1.a25255f29e7f7p-95, 0x1.0c6f7a0b5f0ap-20}},
                              {{-0x1p-201, 0x1p-100}, {0x1p-403, 0x1p-100}}},
                             4);
}

// Both parts of the arguments are whole multiples of 2^-bits, so long double holds |1 + z|^2 - 1
// without rounding.
template <class T>
void expect_logarithms(int bits, double epsilons) {
  std::mt19937_64 random(18);
  std::vector<std::complex<T>> arguments;
  for (int i = 0; i < 2000; ++i) {
    const double y =
        std::floor(std::ldexp(std::uniform_real_distribution<double>(-1, 1)(random), bits));
    const double share = std::ldexp(y, -bits);
    const double x = std::round(std::ldexp(std::sqrt(1 - share * share) - 1, bits)) + i % 5 - 2;
    arguments.emplace_back(static_cast<T>(std::ldexp(x, -bits)), static_cast<T>(share));
  }
  const std::vector<std::complex<T>> got = results(log1p, arguments);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const long double x = arguments[i].real(), y = arguments[i].imag();
    const wide_complex wanted(std::log1p(2 * x + x * x + y * y) / 2, std::atan2(y, 1 + x));
    expect_parts(got[i], wanted, epsilons, arguments[i]);
  }
}

TEST(ComplexFunctions, LogarithmsOfRandomNumbersKeepTheirDigits) {
  expect_logarithms<double>(30, 4);
  expect_logarithms<float>(20, 1);
}

}  // namespace
}  // namespace shale
