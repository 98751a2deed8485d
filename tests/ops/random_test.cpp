// Tests random numbers: each element against Philox4x32-10 written as in its paper, the methods
// against the C library in long double, the distributions against their exact probabilities, and
// that neither threads nor budgets, tiles or views change a bit.
#include "shale/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "shale/error.hpp"
#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/ops.hpp"
#include "shale/tile_source.hpp"
#include "support/failures.hpp"
#include "support/random_tensors.hpp"
#include "support/run_on.hpp"

namespace shale {
namespace {

using test::code_of;
using test::elements_of;
using test::text_of;

// ---- the oracle ---------------------------------------------------------------------------------

using four_words = std::array<std::uint32_t, 4>;
using two_words = std::array<std::uint32_t, 2>;

four_words philox(four_words counter, two_words key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t left = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t right = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(right >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(right),
               static_cast<std::uint32_t>(left >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(left)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// The words of the element at a position, if each element has `width` of them.
std::vector<std::uint32_t> words_of(std::uint64_t seed, std::uint64_t position,
                                    std::uint32_t width) {
  const std::uint64_t block = position / (4 / width);
  const four_words all =
      philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), width, 0},
             {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  const auto* first = all.data() + position % (4 / width) * width;
  return {first, first + width};
}

std::uint32_t word(std::uint64_t seed, std::uint64_t position) {
  return words_of(seed, position, 1)[0];
}
std::uint64_t long_word(std::uint64_t seed, std::uint64_t position) {
  const auto words = words_of(seed, position, 2);
  return std::uint64_t{words[1]} << 32 | words[0];
}

// The vectors are those that the authors publish with Random123.
TEST(Philox, OfTheTestGivesThePublishedAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (four_words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (four_words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (four_words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

const std::vector<std::uint64_t> seeds = {0, 1, 42, 0xa4093822299f31d0, ~std::uint64_t{0}};

std::vector<std::uint64_t> starts() {
  return {0, 1, 2, 3, 1001, 0xfffffff9, 0x3fffffff9, 0x123456789abcdef1, ~std::uint64_t{0} - 600};
}

// random.1: what an element is.
TEST(Random, ElementsAreThoseOfTheSeedAndThePosition) {
  for (const std::uint64_t seed : seeds)
    for (const std::uint64_t start : starts()) {
      generator g(seed, start);
      const index_t n = 600;
      const auto singles = elements_of<float>(eval(uniform(g, {n}, 0, 1, dtype::float32)));
      EXPECT_EQ(g.position(), start + 600);
      g = g.at(start);
      const auto doubles = elements_of<double>(eval(uniform(g, {n})));
      g = g.at(start);
      const auto halves = elements_of<float16>(eval(uniform(g, {n}, 0, 1, dtype::float16)));
      g = g.at(start);
      const auto brains = elements_of<bfloat16>(eval(uniform(g, {n}, 0, 1, dtype::bfloat16)));
      g = g.at(start);
      const auto few = elements_of<std::int64_t>(eval(integers(g, {n}, -7, 1000000000)));
      g = g.at(start);
      const auto many =
          elements_of<std::uint64_t>(eval(integers(g, {n}, 3, ~std::uint64_t{0}, dtype::uint64)));
      g = g.at(start);
      const auto coins = elements_of<bool>(eval(bernoulli(g, {n}, 0.3)));
      for (std::uint64_t i = 0; i < 600; ++i) {
        const std::uint32_t short_one = word(seed, start + i);
        const std::uint64_t long_one = long_word(seed, start + i);
        ASSERT_EQ(singles[i], std::ldexp(static_cast<float>(short_one >> 8), -24));
        ASSERT_EQ(doubles[i], std::ldexp(static_cast<double>(long_one >> 11), -53));
        ASSERT_EQ(float{halves[i]}, std::ldexp(static_cast<float>(short_one >> 21), -11));
        ASSERT_EQ(float{brains[i]}, std::ldexp(static_cast<float>(short_one >> 24), -8));
        __extension__ using wide = unsigned __int128;
        ASSERT_EQ(few[i], static_cast<std::int64_t>((wide{long_one} * 1000000007) >> 64) - 7);
        const auto whole = words_of(seed, start + i, 4);
        // The product of 128 and 64 bits, word by word.
        const std::uint64_t count = ~std::uint64_t{0} - 3;
        wide carry = 0;
        for (const std::uint32_t part : whole) carry = wide{part} * count + (carry >> 32);
        ASSERT_EQ(many[i], 3 + static_cast<std::uint64_t>(carry >> 32));
        ASSERT_EQ(coins[i], static_cast<long double>(long_one) <
                                std::ldexp(static_cast<long double>(0.3), 64));
      }
    }
}

// -log(u) and 2 pi v of the words, nearly exactly.
long double minus_log(std::uint64_t word, int bits) {
  const std::uint64_t k = word >> (bits == 31 ? 1 : 12);
  return -std::log((static_cast<long double>(k) + 0.5L) / std::ldexp(1.0L, bits));
}
long double angle(std::uint64_t word, int bits) {
  const std::uint64_t k = word >> (bits == 32 ? 0 : 12);
  return 2 * std::acos(-1.0L) * (static_cast<long double>(k) + 0.5L) / std::ldexp(1.0L, bits);
}

/// The exact elements of both types at `start`, `start` + 1, …
template <class T>
struct exact {
  static constexpr bool wide = sizeof(T) == 8;
  std::uint64_t seed;
  std::uint64_t word_at(std::uint64_t position) const {
    return wide ? long_word(seed, position) : word(seed, position);
  }
  long double exponential(std::uint64_t position) const {
    return minus_log(word_at(position), wide ? 52 : 31);
  }
  long double turn(std::uint64_t position) const {
    return angle(word_at(position), wide ? 52 : 32);
  }
  long double normal(std::uint64_t position) const {
    const std::uint64_t even = position - position % 2;
    const long double radius = std::sqrt(2 * exponential(even));
    return radius * (position % 2 == 0 ? std::cos(turn(even + 1)) : std::sin(turn(even + 1)));
  }
};

template <class T>
void expect_methods() {
  constexpr long double ulp = std::numeric_limits<T>::epsilon();
  constexpr dtype type = dtype_of<T>();
  for (const std::uint64_t seed : seeds)
    for (const std::uint64_t start : starts()) {
      if (start > ~std::uint64_t{0} - 1000) continue;
      const exact<T> wanted{seed};
      const auto drawn = [&](const std::function<expr(generator&)>& draw) {
        generator g(seed, start);
        return elements_of<T>(eval(draw(g)));
      };
      const auto waits = drawn([](generator& g) { return exponential(g, {500}, 1, type); });
      const auto bells = drawn([](generator& g) { return normal(g, {500}, 0, 1, type); });
      const auto moved = drawn([](generator& g) { return normal(g, {500}, -3, 0.5, type); });
      const auto powers = drawn([](generator& g) { return log_normal(g, {500}, 1, 2, type); });
      const auto slopes = drawn([](generator& g) { return cauchy(g, {500}, 0, 1, type); });
      for (std::uint64_t i = 0; i < 500; ++i) {
        const long double wait = wanted.exponential(start + i), bell = wanted.normal(start + i);
        ASSERT_NEAR(waits[i], wait, 4 * ulp * wait) << i;
        ASSERT_NEAR(bells[i], bell, 4 * ulp * std::max(1.0L, std::fabs(bell))) << i;
        ASSERT_NEAR(moved[i], -3 + 0.5L * bell, 6 * ulp * 4) << i;
        const long double power = std::exp(1 + 2 * bell);
        ASSERT_NEAR(powers[i], power, 16 * ulp * (1 + std::fabs(bell)) * power) << i;
        const long double slope = std::tan(wanted.turn(start + i));
        ASSERT_NEAR(slopes[i], slope, 8 * ulp * std::fabs(slope)) << i;
      }
    }
}

TEST(Random, MethodsAreExactToAFewUlp) {
  expect_methods<float>();
  expect_methods<double>();
}

TEST(Random, GeometricCountsTrials) {
  for (const double p : {1e-12, 0.01, 0.2499, 0.26, 0.5, 0.9, 1.0}) {
    generator g(7);
    const auto got = elements_of<double>(eval(geometric(g, {2000}, p, dtype::float64)));
    int other = 0;
    for (std::uint64_t i = 0; i < 2000; ++i) {
      const long double wait = minus_log(long_word(7, i), 52);
      const long double wanted = p == 1 ? 1 : std::floor(wait / -std::log1p(-p)) + 1;
      other += got[i] != wanted;
      ASSERT_NEAR(got[i], wanted, 1 + 4e-16L * wanted);
    }
    EXPECT_LE(other, p < 1e-6 ? 2000 : 0) << p;
  }
  generator g(7);
  const auto huge = elements_of<std::int8_t>(eval(geometric(g, {100}, 1e-9, dtype::int8)));
  EXPECT_EQ(*std::max_element(huge.begin(), huge.end()), 127);
}

// ---- statistics ---------------------------------------------------------------------------------

/// sqrt(n) times the largest distance between the distribution of the values and `cdf`
/// (Kolmogorov-Smirnov). It is below 1.95 with probability 0.999.
template <class T>
double largest_distance(std::vector<T> values, const std::function<double(double)>& cdf) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double at = cdf(static_cast<double>(values[i]));
    largest = std::max({largest, std::fabs(at - static_cast<double>(i) / n),
                        std::fabs(at - static_cast<double>(i + 1) / n)});
  }
  return largest * std::sqrt(n);
}

template <class T>
void expect_distributions() {
  constexpr dtype type = dtype_of<T>();
  constexpr double limit = 1.95;
  const dims shape{200, 1000};
  const double root_of_2 = std::sqrt(2.0), pi = std::acos(-1.0);
  const auto bell = [&](double z) { return 0.5 * std::erfc(-z / root_of_2); };
  generator g(2024);
  const auto values = [&](const expr& drawn) { return elements_of<T>(eval(drawn)); };
  EXPECT_LT(largest_distance(values(uniform(g, shape, -2, 6, type)),
                             [](double x) { return (x + 2) / 8; }),
            limit);
  EXPECT_LT(largest_distance(values(normal(g, shape, 5, 3, type)),
                             [&](double x) { return bell((x - 5) / 3); }),
            limit);
  EXPECT_LT(largest_distance(values(log_normal(g, shape, 0.5, 0.75, type)),
                             [&](double x) { return bell((std::log(x) - 0.5) / 0.75); }),
            limit);
  EXPECT_LT(largest_distance(values(exponential(g, shape, 2.5, type)),
                             [](double x) { return -std::expm1(-x / 2.5); }),
            limit);
  EXPECT_LT(largest_distance(values(cauchy(g, shape, -1, 2, type)),
                             [&](double x) { return 0.5 + std::atan((x + 1) / 2) / pi; }),
            limit);
}

TEST(Random, DistributionsAreThoseOfTheirNames) {
  expect_distributions<float>();
  expect_distributions<double>();
}

TEST(Random, MomentsOfNormalNumbersAreExact) {
  generator g(99);
  const index_t n = 1 << 20;
  const expr z = normal(g, {n});
  const double root = std::sqrt(static_cast<double>(n));
  const auto moment = [&](int power) {
    return elements_of<double>(eval(mean(pow(z, expr(power)))))[0];
  };
  EXPECT_LT(std::fabs(moment(1)), 4 / root);
  EXPECT_LT(std::fabs(moment(2) - 1), 4 * std::sqrt(2.0) / root);
  EXPECT_LT(std::fabs(moment(3)), 4 * std::sqrt(15.0) / root);
  EXPECT_LT(std::fabs(moment(4) - 3), 4 * std::sqrt(96.0) / root);
  // The two numbers of a pair are independent, and so are neighbouring pairs.
  for (const index_t shift : {1, 2, 3}) {
    const expr products = z.narrow(0, 0, n - shift) * z.narrow(0, shift, n - shift);
    EXPECT_LT(std::fabs(elements_of<double>(eval(mean(products)))[0]), 4 / root) << shift;
  }
}

/// How many deviations chi-square lies above what is expected.
/// Source   E. B. Wilson, M. M. Hilferty, The distribution of chi-square, PNAS 17 (1931)
double surprise(const std::map<std::int64_t, double>& expected,
                const std::vector<std::int64_t>& values) {
  std::map<std::int64_t, double> seen;
  for (const std::int64_t value : values) ++seen[value];
  double sum = 0;
  for (const auto& [value, probability] : expected) {
    const double wanted = probability * static_cast<double>(values.size());
    sum += (seen[value] - wanted) * (seen[value] - wanted) / wanted;
  }
  EXPECT_EQ(seen.size(), expected.size());
  const auto freedom = static_cast<double>(expected.size()) - 1;
  const double variance = 2 / (9 * freedom);
  return (std::cbrt(sum / freedom) - (1 - variance)) / std::sqrt(variance);
}

TEST(Random, IntegersAreEvenlyDistributed) {
  for (const std::int64_t count : {2, 3, 10, 257, 1000}) {
    generator g(static_cast<std::uint64_t>(count));
    std::map<std::int64_t, double> expected;
    for (std::int64_t k = 0; k < count; ++k) expected[k - 5] = 1 / static_cast<double>(count);
    EXPECT_LT(
        surprise(expected, elements_of<std::int64_t>(eval(integers(g, {200000}, -5, count - 5)))),
        3.5)
        << count;
    // A range of 64 bits, of which the upper bits are taken.
    const std::int64_t part = (std::int64_t{1} << 60) / count;
    const expr upper = floor_divide(integers(g, {200000}, 0, part * count), expr(part));
    EXPECT_LT(surprise(expected, elements_of<std::int64_t>(eval(upper - 5))), 3.5) << count;
  }
}

TEST(Random, GeometricNumbersHaveTheirProbabilities) {
  generator g(5);
  std::map<std::int64_t, double> expected;
  for (int k = 1; k < 12; ++k) expected[k] = 0.4 * std::pow(0.6, k - 1);
  expected[12] = std::pow(0.6, 11);
  const expr capped = minimum(geometric(g, {200000}, 0.4), expr(12));
  EXPECT_LT(surprise(expected, elements_of<std::int64_t>(eval(capped))), 3.5);
}

TEST(Random, BernoulliIsTrueAsOftenAsAsked) {
  for (const double p : {0.0, 1e-4, 0.25, 0.5, 0.999, 1.0}) {
    generator g(11);
    const double n = 1 << 20;
    const double seen = static_cast<double>(
        elements_of<std::int64_t>(eval(sum(bernoulli(g, {1 << 20}, p, dtype::int32))))[0]);
    EXPECT_LE(std::fabs(seen - n * p), 4 * std::sqrt(n * p * (1 - p))) << p;
  }
}

// ---- ranges -------------------------------------------------------------------------------------

TEST(Random, UniformStaysBelowItsUpperBound) {
  const auto expect_within = [](dtype type, double low, double high) {
    generator g(1);
    const expr x = uniform(g, {100000}, low, high, type);
    const auto lowest = elements_of<double>(eval(astype(min(x), dtype::float64)))[0];
    const auto highest = elements_of<double>(eval(astype(max(x), dtype::float64)))[0];
    EXPECT_GE(lowest, low) << name(type) << low << " " << high;
    EXPECT_LT(highest, high) << name(type) << low << " " << high;
  };
  for (const dtype type : {dtype::float16, dtype::bfloat16, dtype::float32, dtype::float64}) {
    expect_within(type, 0, 1);
    expect_within(type, -1, 0);
    expect_within(type, -4, -2);
    expect_within(type, 1024, 1032);
    expect_within(type, -512, 1024);
  }
  // Here only two numbers of the dtype lie in the range, and rounding would often give `high`.
  expect_within(dtype::float32, 16777216, 16777220);
  expect_within(dtype::float64, 0x1p53, 0x1p53 + 4);
  generator g(1);
  EXPECT_EQ(elements_of<double>(eval(uniform(g, {3}, 2, 2))), (std::vector<double>{2, 2, 2}));
}

TEST(Random, ParametersOfNoSpreadGiveOneNumber) {
  generator g(3);
  EXPECT_EQ(elements_of<double>(eval(normal(g, {2}, 4, 0))), (std::vector<double>{4, 4}));
  EXPECT_EQ(elements_of<double>(eval(exponential(g, {2}, 0))), (std::vector<double>{0, 0}));
  EXPECT_EQ(elements_of<double>(eval(log_normal(g, {1}, 1000, 0))),
            std::vector<double>{std::numeric_limits<double>::infinity()});
  EXPECT_EQ(elements_of<float>(eval(log_normal(g, {1}, -1000, 0, dtype::float32))),
            std::vector<float>{0});
  EXPECT_EQ(elements_of<std::int8_t>(eval(integers(g, {2}, -128, -127, dtype::int8))),
            (std::vector<std::int8_t>{-128, -128}));
}

// ---- the generator ------------------------------------------------------------------------------

TEST(Generator, AdvancesByTheElementsThatAreDrawn) {
  generator g(8);
  EXPECT_EQ(g, generator(8, 0));
  const expr first = uniform(g, {3, 5});
  EXPECT_EQ(g, generator(8, 15));
  const expr second = uniform(g, {10});
  EXPECT_EQ(g.position(), 25u);
  uniform(g, {0, 4});
  uniform(g, {});
  EXPECT_EQ(g.position(), 26u);
  generator whole(8);
  const tensor all = eval(uniform(whole, {25}));
  const tensor joined = eval(concat(std::vector<expr>{first.ravel(), second}, 0));
  EXPECT_EQ(elements_of<double>(joined), elements_of<double>(all));
  EXPECT_NE(generator(8), generator(9));
  EXPECT_NE(generator(8), generator(8, 1));
  EXPECT_EQ(g.at(0), generator(8));
  g.skip(4);
  EXPECT_EQ(g.position(), 30u);
}

// random.2: distributions that take other numbers of words meet no word of each other.
TEST(Generator, GivesWordsOfOneWidthOnly) {
  generator g(6);
  const auto doubles = elements_of<double>(eval(uniform(g, {64})));
  const auto singles = elements_of<float>(eval(uniform(g, {128}, 0, 1, dtype::float32)));
  for (const double x : doubles)
    for (const float y : singles) EXPECT_GT(std::fabs(x - double{y}), 1e-9);
}

TEST(Generator, KeepsItsPositionIfACallFails) {
  generator g(8, 100);
  EXPECT_EQ(code_of([&] { normal(g, {4}, 0, -1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { normal(g, {-4}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { permutation(g, -4); }), errc::invalid_argument);
  EXPECT_EQ(g.position(), 100u);
}

TEST(Generator, EndsAtTheLastPosition) {
  constexpr std::uint64_t last = ~std::uint64_t{0};
  generator g(1, last - 4);
  EXPECT_EQ(code_of([&] { uniform(g, {5}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { g.skip(5); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { permutation(g, 5); }), errc::invalid_argument);
  EXPECT_EQ(g.position(), last - 4);
  uniform(g, {4});
  EXPECT_EQ(g.position(), last);
  const std::string text = text_of([&] { uniform(g, {7}); });
  EXPECT_NE(text.find("2^64 - 1"), std::string::npos) << text;
  EXPECT_NE(text.find("wanted 7 more"), std::string::npos) << text;
}

TEST(Random, RefusesParametersOutOfRange) {
  generator g(1);
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  const std::vector<std::function<void()>> calls = {
      [&] { uniform(g, {1}, 1, 0); },
      [&] { uniform(g, {1}, nan, 1); },
      [&] { uniform(g, {1}, 0, infinity); },
      [&] { uniform(g, {1}, -1e308, 1e308); },
      [&] { uniform(g, {1}, -3e38, 3e38, dtype::float32); },
      [&] { uniform(g, {1}, 0, 1e39, dtype::float32); },
      [&] { uniform(g, {1}, 0, 70000, dtype::float16); },
      [&] { uniform(g, {1}, 0, 1, dtype::int32); },
      [&] { uniform(g, {1}, 0, 1, dtype::complex64); },
      [&] { uniform(g, {1}, 0, 1, dtype::float8_e5m2); },
      [&] { uniform(g, {1}, 0, 1, static_cast<dtype>(99)); },
      [&] { normal(g, {1}, nan); },
      [&] { normal(g, {1}, 0, -1); },
      [&] { normal(g, {1}, 0, nan); },
      [&] { normal(g, {1}, 0, 1e39, dtype::float32); },
      [&] { log_normal(g, {1}, 0, -1); },
      [&] { exponential(g, {1}, -1); },
      [&] { exponential(g, {1}, infinity); },
      [&] { cauchy(g, {1}, 0, -1); },
      [&] { cauchy(g, {1}, infinity); },
      [&] { geometric(g, {1}, 0); },
      [&] { geometric(g, {1}, 1.5); },
      [&] { geometric(g, {1}, nan); },
      [&] { geometric(g, {1}, 0.5, dtype::boolean); },
      [&] { bernoulli(g, {1}, -0.1); },
      [&] { bernoulli(g, {1}, 1.1); },
      [&] { bernoulli(g, {1}, nan); },
      [&] { bernoulli(g, {1}, 0.5, static_cast<dtype>(99)); },
      [&] { integers(g, {1}, 3, 3); },
      [&] { integers(g, {1}, 4, 3); },
      [&] { integers(g, {1}, 0.5, 3); },
      [&] { integers(g, {1}, 0, nan); },
      [&] { integers(g, {1}, 0, 129, dtype::int8); },
      [&] { integers(g, {1}, -1, 5, dtype::uint8); },
      [&] { integers(g, {1}, 0, ~std::uint64_t{0}); },
      [&] { integers(g, {1}, 0, 5, dtype::float32); },
      [&] { integers(g, {1}, 0, 5, dtype::boolean); },
  };
  for (std::size_t k = 0; k < calls.size(); ++k)
    EXPECT_EQ(code_of(calls[k]), errc::invalid_argument) << "call " << k;
  EXPECT_EQ(g.position(), 0u);
  const std::string text = text_of([&] { normal(g, {1}, 0, -2); });
  EXPECT_NE(text.find("normal: 'stddev' is negative"), std::string::npos) << text;
  EXPECT_NE(text.find("got -2.0"), std::string::npos) << text;
}

TEST(Random, ErrorsNameParametersAsTheHeaderDoes) {
  generator g(30);
  const std::vector<std::pair<std::string, std::function<void()>>> wrong{
      {"cauchy: 'scale' is negative", [&] { cauchy(g, {1}, 0, -1); }},
      {"log_normal: 'mean' is not finite", [&] { log_normal(g, {1}, std::nan("")); }},
      {"geometric: 'probability' is out of range", [&] { geometric(g, {1}, 0); }},
      {"bernoulli: 'probability' is out of range", [&] { bernoulli(g, {1}, 2); }},
      {"permutation: 'count' is negative", [&] { permutation(g, -1); }},
      {"choice: 'count' is out of range", [&] { choice(g, tensor::ones({3}, dtype::int8), -1); }},
      {"'weights' has a negative number or NaN",
       [&] { multinomial(g, expr(-1).expand_dims(0), 1); }},
  };
  for (const auto& [wanted, call] : wrong) {
    const std::string text = text_of(call);
    EXPECT_NE(text.find(wanted), std::string::npos) << text;
  }
}

// ---- the same bits in every way -----------------------------------------------------------------

/// One leaf of each kind, of 90 x 70 elements.
std::vector<expr> leaves() {
  generator g(31, 77);
  const dims shape{90, 70};
  return {uniform(g, shape),
          uniform(g, shape, -3, 5, dtype::float32),
          uniform(g, shape, 0, 1, dtype::bfloat16),
          normal(g, shape),
          normal(g, shape, 1, 2, dtype::float32),
          normal(g, shape, 1, 2, dtype::float16),
          log_normal(g, shape),
          exponential(g, shape, 2, dtype::float32),
          cauchy(g, shape),
          geometric(g, shape, 0.2, dtype::int16),
          bernoulli(g, shape, 0.4),
          integers(g, shape, 0, 1000, dtype::uint16),
          integers(g, shape, 0, std::int64_t{1} << 50)};
}

std::vector<std::byte> bits_of(const tensor& values) {
  const tensor packed = eval(expr(values));
  return {packed.data(), packed.data() + packed.size() * static_cast<index_t>(packed.item_bytes())};
}

template <class View>
void expect_view_of_values(View view) {
  for (const expr& leaf : leaves()) {
    const expr viewed = view(leaf);
    const tensor wanted = eval(view(expr(eval(leaf))));
    const tensor got = eval(viewed);
    ASSERT_EQ(got.shape(), wanted.shape());
    EXPECT_TRUE(bits_of(got) == bits_of(wanted)) << name(leaf.dtype());
    // The view is computed in the pass that reads it; nothing is held in memory.
    if (viewed.size() <= leaf.size()) {
      EXPECT_EQ(explain(viewed).passes, 1);
      EXPECT_EQ(explain(viewed).bytes_read, 0u);
    }
  }
}

TEST(Random, ViewsHaveTheElementsOfTheWhole) {
  expect_view_of_values([](const expr& x) { return x.flip(); });
  expect_view_of_values([](const expr& x) { return x.flip({1}); });
  expect_view_of_values([](const expr& x) { return x.permute_dims({1, 0}); });
  expect_view_of_values([](const expr& x) { return x.narrow(0, 7, 30).narrow(1, 3, 41); });
  expect_view_of_values([](const expr& x) { return x.narrow(1, 3, 5); });
  expect_view_of_values([](const expr& x) { return x.sliced(1, slice{60, 3, -4}); });
  expect_view_of_values([](const expr& x) { return x.select(1, 69); });
  expect_view_of_values([](const expr& x) { return x.select(0, 5).select(0, 6); });
  expect_view_of_values([](const expr& x) {
    return x.reshape({7, 9, 100}).permute_dims({2, 0, 1});
  });
  expect_view_of_values([](const expr& x) { return x.ravel(); });
  expect_view_of_values([](const expr& x) { return x.diagonal(3); });
  expect_view_of_values([](const expr& x) { return x.unfold(1, 9, 4); });
  expect_view_of_values([](const expr& x) { return x.select(0, 1).broadcast_to({50, 70}); });
  expect_view_of_values([](const expr& x) { return x.narrow(0, 2, 0); });
}

TEST(Random, ThreadsAndBudgetsDoNotChangeABit) {
  executor first({.threads = 1});
  std::vector<std::vector<std::byte>> wanted;
  test::run_on(first, [&] {
    for (const expr& leaf : leaves()) wanted.push_back(bits_of(eval(leaf)));
  });
  for (const int threads : {1, 2, 4})
    for (const std::size_t budget : {std::size_t{1} << 16, std::size_t{1} << 28}) {
      executor on({.threads = threads, .memory_bytes = budget});
      const executor::scope within(on);
      std::size_t k = 0;
      for (const expr& leaf : leaves()) {
        tensor out = tensor::empty(leaf.shape(), leaf.dtype());
        eval_into(out, leaf);
        EXPECT_TRUE(bits_of(out) == wanted[k]);
        // Columns that lie far apart.
        const tensor turned =
            tensor::empty({leaf.shape(1), leaf.shape(0)}, leaf.dtype()).permute_dims({1, 0});
        eval_into(turned, leaf);
        EXPECT_TRUE(bits_of(turned) == wanted[k++]);
      }
    }
}

/// A tile source over a tensor in memory.
class tiled final : public tile_source {
 public:
  tiled(const tensor& values, const dims& tile_shape) : values_(values), tile_shape_(tile_shape) {}

  shale::dtype dtype() const noexcept override { return values_.dtype(); }
  const dims& shape() const noexcept override { return values_.shape(); }
  const dims& tile_shape() const noexcept override { return tile_shape_; }
  bool writable() const noexcept override { return true; }
  std::uint64_t stored_bytes(const dims&) const override { return 1; }
  void load(const dims& tile, const tensor& into) const override { copy(into, part(tile)); }
  void store(const dims& tile, const tensor& from) override { copy(part(tile), from); }

 private:
  tensor part(const dims& tile) const {
    tensor result = values_;
    for (index_t axis = 0; axis < tile.size(); ++axis) {
      const index_t start = tile[axis] * tile_shape_[axis];
      result =
          result.narrow(axis, start, std::min(tile_shape_[axis], values_.shape()[axis] - start));
    }
    return result;
  }

  tensor values_;
  dims tile_shape_;
};

TEST(Random, TilesDoNotChangeABit) {
  executor little({.threads = 2, .memory_bytes = 1 << 16});
  const executor::scope within(little);
  for (const expr& leaf : leaves())
    for (const dims& tile : {dims{1, 70}, dims{90, 1}, dims{7, 11}, dims{64, 64}, dims{90, 70}}) {
      const tensor held = tensor::empty(leaf.shape(), leaf.dtype());
      tiled out(held, tile);
      eval_into(out, leaf);
      EXPECT_TRUE(bits_of(held) == bits_of(eval(leaf))) << to_string(tile);
    }
}

TEST(Random, NumbersAreReducedWithoutMemoryForThem) {
  executor little({.threads = 2, .memory_bytes = 1 << 20});
  const executor::scope within(little);
  generator g(12);
  const index_t n = 3000;
  const expr x = uniform(g, {n, n}, 0, 1, dtype::float32);  // 36 MB
  const double root = static_cast<double>(n);
  EXPECT_NEAR(elements_of<float>(eval(mean(x)))[0], 0.5, 4 / root);
  EXPECT_NEAR(elements_of<float>(eval(mean(x - x.flip())))[0], 0, 1e-7);
  EXPECT_LT(explain(mean(x)).bytes_read, 100u);
}

TEST(Random, ExpressionsOfLeavesAreThoseOfTheirValues) {
  generator g(14);
  const expr a = normal(g, {40, 30}), b = uniform(g, {30}, 1, 2);
  const tensor held_a = eval(a), held_b = eval(b);
  EXPECT_EQ(elements_of<double>(eval(a / b + a.flip({0}))),
            elements_of<double>(eval(expr(held_a) / held_b + expr(held_a).flip({0}))));
  EXPECT_EQ(elements_of<double>(eval(sum(a * b, dims{0}))),
            elements_of<double>(eval(sum(expr(held_a) * held_b, dims{0}))));
  EXPECT_EQ(elements_of<double>(eval(a)), elements_of<double>(held_a));
}

// ---- categories ---------------------------------------------------------------------------------

tensor row_of(const std::vector<double>& values) {
  return tensor::of(std::span<const double>(values), {static_cast<index_t>(values.size())});
}

TEST(Multinomial, DrawsCategoriesByTheirWeights) {
  generator g(41, 5);
  const std::vector<double> weights = {0, 3, 0, 1, 0.5, 0, 5.5, 0};
  const tensor got = multinomial(g, row_of(weights), 100000);
  EXPECT_EQ(g, generator(41, 100005));
  EXPECT_EQ(got.shape(), dims{100000});
  EXPECT_LT(surprise({{1, 0.3}, {3, 0.1}, {4, 0.05}, {6, 0.55}}, elements_of<std::int64_t>(got)),
            3.5);
  // Each result is the category that the number of its position falls into.
  const auto numbers = elements_of<std::int64_t>(got);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const double x = std::ldexp(static_cast<double>(long_word(41, 5 + i) >> 11), -53) * 10;
    EXPECT_EQ(numbers[i], x < 3 ? 1 : x < 4 ? 3 : x < 4.5 ? 4 : 6);
  }
}

TEST(Multinomial, DrawsFromEachRow) {
  generator g(43);
  const tensor weights = tensor::of({{1.f, 0.f, 0.f}, {0.f, 0.f, 2.f}});
  EXPECT_EQ(elements_of<std::int64_t>(multinomial(g, weights, 2)),
            (std::vector<std::int64_t>{0, 0, 2, 2}));
  EXPECT_EQ(multinomial(g, weights, 0).shape(), (dims{2, 0}));
  EXPECT_EQ(multinomial(g, tensor::empty({0, 3}, dtype::float32), 4).shape(), (dims{0, 4}));
  EXPECT_EQ(g.position(), 4u);
  EXPECT_EQ(elements_of<std::int64_t>(multinomial(g, arange(2), 3)),
            (std::vector<std::int64_t>{1, 1, 1}));
}

TEST(Multinomial, RefusesWeightsThatAreNone) {
  generator g(1);
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& weights :
       {std::vector<double>{1, -1}, {1, nan}, {1, infinity}, {0, 0}, {}, {1e308, 1e308}})
    EXPECT_EQ(code_of([&] { multinomial(g, row_of(weights), 3); }), errc::invalid_argument);
  const expr one = full({1}, 1.0);
  EXPECT_EQ(code_of([&] { multinomial(g, one, -1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { multinomial(g, expr(1.0), 1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { multinomial(g, full({1, 1, 1}, 1.0), 1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { multinomial(g, astype(one, dtype::complex64), 1); }),
            errc::invalid_argument);
  EXPECT_EQ(g.position(), 0u);
}

// ---- permutations -------------------------------------------------------------------------------

TEST(Permutation, SwapsEachPlaceWithOneBeforeIt) {
  for (const index_t n : {0, 1, 2, 1000, 1023, 1024, 1025, 5000}) {
    generator g(21, 9);
    const tensor got = permutation(g, n);
    EXPECT_EQ(g.position(), 9 + static_cast<std::uint64_t>(n));
    std::vector<std::int64_t> wanted(static_cast<std::size_t>(n));
    std::iota(wanted.begin(), wanted.end(), 0);
    for (std::size_t place = wanted.size(); place-- > 0;) {
      __extension__ using wide = unsigned __int128;
      const auto other =
          static_cast<std::size_t>((wide{long_word(21, 9 + place)} * (place + 1)) >> 64);
      std::swap(wanted[place], wanted[other]);
    }
    EXPECT_EQ(elements_of<std::int64_t>(got), wanted);
    std::sort(wanted.begin(), wanted.end());
    for (std::size_t k = 0; k < wanted.size(); ++k)
      ASSERT_EQ(wanted[k], static_cast<std::int64_t>(k));
  }
}

TEST(Permutation, OfFourNumbersHasEveryOrderEquallyOften) {
  generator g(22);
  std::vector<std::int64_t> orders;
  std::map<std::int64_t, double> expected;
  for (int k = 0; k < 24000; ++k) {
    std::int64_t order = 0;
    for (const std::int64_t number : elements_of<std::int64_t>(permutation(g, 4)))
      order = 10 * order + number;
    orders.push_back(order);
    expected[order] = 1.0 / 24;
  }
  EXPECT_EQ(expected.size(), 24u);
  EXPECT_LT(surprise(expected, orders), 3.5);
}

// ---- draws without replacement -------------------------------------------------------------------

TEST(MultinomialOnce, DrawsEachOrderAsOftenAsItsWeightsSay) {
  generator g(31, 7);
  const std::vector<double> weights = {0.5, 0, 2, 1.5, 0, 1};
  const tensor rows = eval(row_of(weights).broadcast_to({40000, 6}));
  const tensor got = multinomial(g, rows, 2, replacement::no);
  EXPECT_EQ(g, generator(31, 7 + 240000));
  EXPECT_EQ(got.shape(), (dims{40000, 2}));
  std::map<std::int64_t, double> expected;
  for (std::size_t i = 0; i < weights.size(); ++i)
    for (std::size_t j = 0; j < weights.size(); ++j)
      if (i != j && weights[i] > 0 && weights[j] > 0)
        expected[static_cast<std::int64_t>(10 * i + j)] =
            weights[i] / 5 * weights[j] / (5 - weights[i]);
  std::vector<std::int64_t> pairs;
  const auto drawn = elements_of<std::int64_t>(got);
  for (std::size_t k = 0; k < drawn.size(); k += 2) pairs.push_back(10 * drawn[k] + drawn[k + 1]);
  EXPECT_LT(surprise(expected, pairs), 3.5);
}

TEST(MultinomialOnce, DrawsAllIfAsked) {
  generator g(32);
  const std::vector<double> weights = {5e-324, 0, 1e-323, 5e-324, 5e-324, 0};
  std::set<std::int64_t> firsts;
  for (int k = 0; k < 200; ++k) {
    auto drawn = elements_of<std::int64_t>(multinomial(g, row_of(weights), 4, replacement::no));
    firsts.insert(drawn[0]);
    std::sort(drawn.begin(), drawn.end());
    ASSERT_EQ(drawn, (std::vector<std::int64_t>{0, 2, 3, 4}));
  }
  EXPECT_EQ(firsts.size(), 4U) << "tiny weights are not all alike";
  EXPECT_EQ(multinomial(g, row_of(weights), 0, replacement::no).shape(), dims{0});
  EXPECT_EQ(multinomial(g, tensor::empty({0, 3}, dtype::float32), 2, replacement::no).shape(),
            (dims{0, 2}));
}

TEST(MultinomialOnce, RefusesMoreThanThereIs) {
  generator g(33);
  const double nan = std::nan("");
  for (const std::vector<double>& weights :
       {std::vector<double>{1, 0, 2}, {1, 2, -1}, {1, nan, 1}, {}, {1, 2}})
    EXPECT_EQ(code_of([&] { multinomial(g, row_of(weights), 3, replacement::no); }),
              errc::invalid_argument);
  EXPECT_EQ(g.position(), 0u);
}

TEST(Choice, TakesSlicesThatWereDrawn) {
  const tensor a = eval(arange(5 * 4 * 3).reshape({5, 4, 3}));
  for (const index_t axis : {0, 1, 2, -2}) {
    const index_t length = a.shape(axis);
    generator g(34, 3), same(34, 3);
    const tensor got = eval(choice(g, a, 9, replacement::yes, axis));
    const auto numbers = elements_of<std::int64_t>(eval(integers(same, {9}, 0, length)));
    EXPECT_EQ(g, same);
    for (index_t k = 0; k < 9; ++k)
      EXPECT_EQ(elements_of<std::int64_t>(got.select(axis, k)),
                elements_of<std::int64_t>(a.select(axis, numbers[static_cast<std::size_t>(k)])));
    const tensor all = eval(choice(g, a, length, replacement::no, axis));
    const auto order = elements_of<std::int64_t>(permutation(same, length));
    EXPECT_EQ(g, same);
    for (index_t k = 0; k < length; ++k)
      EXPECT_EQ(elements_of<std::int64_t>(all.select(axis, k)),
                elements_of<std::int64_t>(a.select(axis, order[static_cast<std::size_t>(k)])));
  }
  generator g(35);
  EXPECT_EQ(choice(g, a, 0).shape(), (dims{0, 4, 3}));
  EXPECT_EQ(choice(g, tensor::empty({0, 2}, dtype::int8), 0).shape(), (dims{0, 2}));
  const std::uint64_t before = g.position();
  EXPECT_EQ(code_of([&] { choice(g, a, -1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { choice(g, a, 6, replacement::no); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { choice(g, a, 1, replacement::yes, 3); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { choice(g, expr(1), 1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] {
              choice(g, tensor::empty({0, 2}, dtype::int8), 1);
            }),
            errc::invalid_argument);
  EXPECT_EQ(g.position(), before);
}

TEST(Shuffle, PutsSlicesIntoRandomOrder) {
  const tensor all = eval(arange(60 * 7).reshape({60, 7}));
  const tensor before = all.clone();
  const tensor part = all.sliced(0, {.start = 1, .step = 2}).narrow(1, 2, 4);
  const tensor part_before = part.clone();
  generator g(36), same(36);
  shuffle(g, part);
  const auto order = elements_of<std::int64_t>(permutation(same, 30));
  EXPECT_EQ(g, same);
  for (index_t k = 0; k < 30; ++k)
    EXPECT_EQ(elements_of<std::int64_t>(part.select(0, k)),
              elements_of<std::int64_t>(part_before.select(0, order[static_cast<std::size_t>(k)])));
  EXPECT_EQ(elements_of<std::int64_t>(all.narrow(1, 0, 2)),
            elements_of<std::int64_t>(before.narrow(1, 0, 2)))
      << "elements outside of the view";
  shuffle(g, all, 1);
  EXPECT_EQ(g.position(), 37u);
  EXPECT_EQ(code_of([&] { shuffle(g, all, 2); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] {
              shuffle(g, tensor::full({3, 3}, 1, dtype::int8).narrow(0, 0, 1).broadcast_to({4, 3}));
            }),
            errc::invalid_argument);
  EXPECT_EQ(g.position(), 37u);
}

// The number of integers is 2^64, which no integer of 64 bits holds. They are the words themselves.
TEST(RandomIntegers, MayBeAllOfADtype) {
  generator source(3);
  const tensor drawn = eval(integers(source, {1000}, std::numeric_limits<std::int64_t>::min(),
                                     scalar(std::uint64_t{1} << 63)));
  index_t negative = 0;
  std::set<std::int64_t> different;
  for (const std::int64_t number : test::elements_of<std::int64_t>(drawn)) {
    negative += number < 0 ? 1 : 0;
    different.insert(number);
  }
  const auto numbers = elements_of<std::int64_t>(drawn);
  for (std::size_t position = 0; position < numbers.size(); ++position)
    ASSERT_EQ(static_cast<std::uint64_t>(numbers[position]), long_word(3, position));
  EXPECT_EQ(different.size(), 1000U);
  EXPECT_GT(negative, 400);
  EXPECT_LT(negative, 600);
}

// The product of a fraction and a subnormal sum may be rounded up to the sum.
TEST(Multinomial, OfTinyWeightsDrawsNoCategoryBehindTheLastOne) {
  generator source(5);
  const tensor weights = tensor::of<double>({0, 5e-324, 0});
  for (const std::int64_t category :
       test::elements_of<std::int64_t>(multinomial(source, weights, 200)))
    ASSERT_EQ(category, 1);
}

}  // namespace
}  // namespace shale
