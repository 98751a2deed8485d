// Tests the elementwise functions that are made of others, and those whose dtypes have rules of
// their own: signs and neighbours of floats, shifts of integers, parts of complex numbers. The
// oracles are formulas in a wider type, one element at a time.
#include "shale/elementwise.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <limits>
#include <numbers>
#include <vector>

#include "shale/creation.hpp"
#include "shale/error.hpp"
#include "shale/evaluate.hpp"
#include "support/failures.hpp"
#include "support/random_layouts.hpp"
#include "support/random_tensors.hpp"

namespace shale {
namespace {

using test::code_of;
using test::elements_of;
using test::random_choices;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double none = std::numeric_limits<double>::quiet_NaN();

/// Numbers of many sizes and both signs, also those at which functions change their formulas.
std::vector<double> numbers() {
  std::vector<double> result{0,    -0.0,  1,   -1,   0.5,      -0.5,      2.5,  -7.5,
                             88.5, -88.5, 104, -104, infinity, -infinity, none, -0.693147};
  random_choices choose(5);
  for (int i = 0; i < 200; ++i)
    result.push_back(static_cast<double>(choose(-100'000, 100'000)) / 1000);
  return result;
}

template <class T>
tensor tensor_of(const std::vector<double>& values) {
  const tensor made = tensor::empty({static_cast<index_t>(values.size())}, dtype_of<T>());
  std::copy(values.begin(), values.end(), made.elements<T>().begin());
  return made;
}

/// Compares the results for every pair of numbers with an oracle that gets the operands as T holds
/// them. `ulps` are those of the largest of the operands and the result.
template <class T>
void expect_of_pairs(const std::function<expr(const expr&, const expr&)>& function,
                     long double (*oracle)(long double, long double), double ulps) {
  const tensor values = tensor_of<T>(numbers());
  const index_t count = values.size();
  const auto elements = elements_of<T>(values);
  const auto got = elements_of<T>(eval(function(expr(values).reshape({count, 1}), values)));
  for (std::size_t i = 0; i < got.size(); ++i) {
    const T a = elements[i / elements.size()], b = elements[i % elements.size()];
    const long double wanted = oracle(a, b);
    if (std::isnan(wanted)) {
      ASSERT_TRUE(std::isnan(got[i])) << a << ", " << b;
    } else if (got[i] != static_cast<T>(wanted)) {
      const auto size = std::max({std::fabs(static_cast<long double>(a)),
                                  std::fabs(static_cast<long double>(b)), std::fabs(wanted)});
      ASSERT_LE(std::fabs(got[i] - wanted), ulps * std::numeric_limits<T>::epsilon() * size)
          << a << ", " << b << ": got " << got[i];
    }
  }
}

template <class T>
void expect_of_numbers(const std::function<expr(const expr&)>& function,
                       long double (*oracle)(long double), double ulps) {
  const tensor values = tensor_of<T>(numbers());
  const auto elements = elements_of<T>(values);
  const auto got = elements_of<T>(eval(function(values)));
  for (std::size_t i = 0; i < got.size(); ++i) {
    const long double wanted = oracle(elements[i]);
    if (std::isnan(wanted)) {
      ASSERT_TRUE(std::isnan(got[i])) << elements[i];
    } else if (got[i] != static_cast<T>(wanted)) {
      const long double least = std::numeric_limits<T>::denorm_min();
      ASSERT_LE(std::fabs(got[i] - wanted),
                ulps * std::max(std::numeric_limits<T>::epsilon() * std::fabs(wanted), least))
          << elements[i] << ": got " << got[i];
    }
  }
}

template <class T>
class Elementwise : public testing::Test {};
using float_list = testing::Types<float, double>;
TYPED_TEST_SUITE(Elementwise, float_list);

TYPED_TEST(Elementwise, FunctionsThatAreMadeOfOthersKeepTheirAccuracy) {
  using T = TypeParam;
  expect_of_numbers<T>([](const expr& a) { return sigmoid(a); },
                       [](long double a) { return 1 / (1 + std::exp(-a)); }, 3);
  expect_of_numbers<T>([](const expr& a) { return rsqrt(a); },
                       [](long double a) { return 1 / std::sqrt(a); }, 1.5);
  expect_of_numbers<T>([](const expr& a) { return reciprocal(a); },
                       [](long double a) { return 1 / a; }, 0.5);
  expect_of_numbers<T>([](const expr& a) { return frac(a); },
                       [](long double a) { return a - std::trunc(a); }, 0);
  expect_of_numbers<T>(
      [](const expr& a) { return angle(a); },
      [](long double a) {
        return std::isnan(a) ? a : std::signbit(a) ? std::numbers::pi_v<long double> : 0;
      },
      1);
}

TYPED_TEST(Elementwise, LogarithmsOfSumsDoNotOverflow) {
  const auto logarithm = [](const expr& a, const expr& b) { return logaddexp(a, b); };
  expect_of_pairs<TypeParam>(
      logarithm,
      [](long double a, long double b) {
        if (std::isnan(a) || std::isnan(b)) return a + b;
        const long double larger = std::max(a, b);
        if (std::isinf(larger)) return larger;
        return larger + std::log(std::exp(a - larger) + std::exp(b - larger));
      },
      2);
}

TYPED_TEST(Elementwise, SignsAndNeighboursAreThoseOfTheDtype) {
  using T = TypeParam;
  const tensor values = tensor_of<T>(numbers());
  const index_t count = values.size();
  const expr column = expr(values).reshape({count, 1});
  const auto elements = elements_of<T>(values);
  const auto signs = elements_of<T>(eval(copysign(column, values)));
  const auto after = elements_of<T>(eval(nextafter(column, values)));
  const auto rests = elements_of<T>(eval(fmod(column, values)));
  const auto bits = elements_of<bool>(eval(signbit(values)));
  const auto same = [](T a, T b) {
    return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
  };
  for (std::size_t i = 0; i < signs.size(); ++i) {
    const T a = elements[i / elements.size()], b = elements[i % elements.size()];
    ASSERT_TRUE(same(signs[i], std::copysign(a, b))) << a << ", " << b;
    ASSERT_TRUE(same(after[i], std::nextafter(a, b))) << a << ", " << b;
    ASSERT_TRUE(same(rests[i], std::fmod(a, b))) << a << ", " << b;
  }
  for (std::size_t i = 0; i < bits.size(); ++i) ASSERT_EQ(bits[i], std::signbit(elements[i]));
}

// float32 would hold the neighbour of a float16 only as the number itself.
TEST(ElementwiseOfSmallFloats, NeighboursAreOfTheSameDtype) {
  const expr one = astype(tensor::of({1.0f, 1.0f, 0.0f}), dtype::float16);
  const expr to = astype(tensor::of({2.0f, 0.0f, -1.0f}), dtype::float16);
  const tensor after = eval(nextafter(one, to));
  EXPECT_EQ(after.dtype(), dtype::float16);
  EXPECT_EQ(elements_of<float>(eval(astype(after, dtype::float32))),
            (std::vector<float>{1 + 0x1p-10f, 1 - 0x1p-11f, -0x1p-24f}));
  const tensor brief = eval(nextafter(astype(one, dtype::bfloat16), 2));
  EXPECT_EQ(elements_of<float>(eval(astype(brief, dtype::float32))),
            (std::vector<float>{1 + 0x1p-7f, 1 + 0x1p-7f, 0x1p-133f}));
  EXPECT_EQ(copysign(one, -1.0).dtype(), dtype::float16);
  EXPECT_EQ(elements_of<bool>(eval(signbit(to))), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(sigmoid(one).dtype(), dtype::float16);
  EXPECT_EQ(logaddexp(one, one).dtype(), dtype::float16);
  EXPECT_EQ(logaddexp(one, tensor::of({1.0f})).dtype(), dtype::float32);
  // One rounding: the logarithm of 2 e in float16.
  EXPECT_EQ(eval(logaddexp(one, one)).select(0, 0).item().as<double>(), 1.693359375);
}

TEST(ElementwiseOfIntegers, ShiftsMoveBitsOut) {
  const tensor a = tensor::of<std::int8_t>({1, -1, 100, -128, 3});
  const tensor places = tensor::of<std::int8_t>({7, 8, 1, 127, -1});
  EXPECT_EQ(elements_of<std::int8_t>(eval(bitwise_left_shift(a, places))),
            (std::vector<std::int8_t>{-128, 0, -56, 0, 0}));
  EXPECT_EQ(elements_of<std::int8_t>(eval(bitwise_right_shift(a, places))),
            (std::vector<std::int8_t>{0, -1, 50, -1, 0}));
  EXPECT_EQ(elements_of<std::uint64_t>(
                eval(bitwise_right_shift(tensor::of<std::uint64_t>({~std::uint64_t{0}, 1}), 63))),
            (std::vector<std::uint64_t>{1, 0}));
  EXPECT_EQ(elements_of<std::int8_t>(eval(fmod(a, places))),
            (std::vector<std::int8_t>{1, -1, 0, -1, 0}));
  EXPECT_EQ(eval(fmod(a, std::int8_t{0})).select(0, 2).item(), scalar(0));
}

TEST(ElementwiseOfIntegers, FractionsAreFloats) {
  const tensor a = tensor::of<std::uint8_t>({10, 0}), b = tensor::of<std::uint8_t>({4, 8});
  EXPECT_EQ(elements_of<float>(eval(lerp(a, b, 0.5))), (std::vector<float>{7, 4}));
  EXPECT_EQ(elements_of<float>(eval(copysign(a, -1.0))), (std::vector<float>{-10, -0.0f}));
  EXPECT_EQ(reciprocal(a).dtype(), dtype::float64);
  EXPECT_EQ(sigmoid(tensor::of<std::int8_t>({-128})).dtype(), dtype::float32);
  EXPECT_GT(eval(sigmoid(tensor::of<std::int8_t>({-80}))).item().as<float>(), 1e-36f);
  EXPECT_EQ(angle(tensor::of<std::int32_t>({-1})).dtype(), dtype::float64);
  EXPECT_EQ(elements_of<bool>(eval(signbit(tensor::of<std::int8_t>({-3, 3})))),
            (std::vector<bool>{true, false}));
  EXPECT_EQ(elements_of<bool>(eval(signbit(a))), (std::vector<bool>{false, false}));
  EXPECT_EQ(elements_of<std::uint8_t>(eval(frac(a))), (std::vector<std::uint8_t>{0, 0}));
}

TEST(ElementwiseOfIntegers, ArePromotedBeforeTheyBecomeFractions) {
  const tensor bytes = tensor::of<std::int8_t>({10}), words = tensor::of<std::uint16_t>({300});
  const tensor longs = tensor::of<std::int64_t>({0}), singles = tensor::of({0.f});
  EXPECT_EQ(logaddexp(longs, singles).dtype(), dtype::float32);
  EXPECT_FLOAT_EQ(eval(logaddexp(longs, singles)).item().as<float>(), std::log(2.f));
  EXPECT_EQ(logaddexp(bytes, words).dtype(), dtype::float64);
  EXPECT_EQ(logaddexp(bytes, 300).dtype(), dtype::float32);
  EXPECT_EQ(logaddexp(astype(singles, dtype::float16), longs).dtype(), dtype::float16);
  EXPECT_EQ(lerp(longs, singles, singles).dtype(), dtype::float32);
  EXPECT_EQ(lerp(singles, singles, longs).dtype(), dtype::float32);
  EXPECT_EQ(lerp(bytes, words, 0.5).dtype(), dtype::float64);
  EXPECT_EQ(lerp(bytes, bytes, 0.5).dtype(), dtype::float32);
  EXPECT_EQ(lerp(astype(singles, dtype::complex64), longs, 1).dtype(), dtype::complex64);
  EXPECT_EQ(eval(lerp(bytes, 300, 2)).item().as<float>(), 590);
  // Numbers alone still have no dtype.
  EXPECT_EQ(lerp(1, 2, 0).dtype(), dtype::float64);
  EXPECT_EQ((logaddexp(1, 2) * singles).dtype(), dtype::float32);
  EXPECT_EQ((lerp(1, 2, 0.5) * singles).dtype(), dtype::float32);
}

TEST(ElementwiseOfComplexNumbers, PartsAreReal) {
  using value = std::complex<float>;
  const tensor z = tensor::empty({2}, dtype::complex64);
  const std::vector<value> values{{3, -4}, {-0.0f, 0}};
  std::copy(values.begin(), values.end(), reinterpret_cast<value*>(z.data()));
  EXPECT_EQ(elements_of<value>(eval(conj(z))), (std::vector<value>{{3, 4}, {0, 0}}));
  EXPECT_TRUE(std::signbit(elements_of<value>(eval(conj(z)))[1].imag()));
  EXPECT_EQ(elements_of<float>(eval(real(z))), (std::vector<float>{3, 0}));
  EXPECT_EQ(elements_of<float>(eval(imag(z))), (std::vector<float>{-4, 0}));
  EXPECT_FLOAT_EQ(elements_of<float>(eval(angle(z)))[0], std::atan2(-4.0f, 3.0f));
  EXPECT_FLOAT_EQ(elements_of<float>(eval(angle(z)))[1], std::numbers::pi_v<float>);
  // Of a view, and of real numbers.
  EXPECT_EQ(elements_of<float>(eval(imag(expr(z).flip()))), (std::vector<float>{0, -4}));
  const tensor a = tensor::of({1.5f});
  EXPECT_EQ(eval(conj(a)).item(), scalar(1.5));
  EXPECT_EQ(eval(real(a)).item(), scalar(1.5));
  EXPECT_EQ(eval(imag(a)).item(), scalar(0.0));
  EXPECT_EQ(imag(a).dtype(), dtype::float32);
}

TEST(ElementwisePoints, BetweenTwoAreExactAtBoth) {
  random_choices choose(9);
  std::vector<double> a, b;
  for (int i = 0; i < 300; ++i) {
    a.push_back(std::ldexp(static_cast<double>(choose(-1000, 1000)) / 7,
                           static_cast<int>(choose(-40, 40))));
    b.push_back(std::ldexp(static_cast<double>(choose(-1000, 1000)) / 7,
                           static_cast<int>(choose(-40, 40))));
  }
  const tensor from = tensor_of<double>(a), to = tensor_of<double>(b);
  EXPECT_EQ(elements_of<double>(eval(lerp(from, to, 0))), a);
  EXPECT_EQ(elements_of<double>(eval(lerp(from, to, 1))), b);
  EXPECT_EQ(elements_of<double>(eval(lerp(from, to, tensor::full({300}, 1.0, dtype::float64)))), b);
  const auto middle = elements_of<double>(eval(lerp(from, to, 0.25)));
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(middle[i], 0.75 * a[i] + 0.25 * b[i],
                1e-15 * std::max(std::fabs(a[i]), std::fabs(b[i])));
  EXPECT_EQ(elements_of<double>(eval(addcmul(from, to, from, 2))),
            elements_of<double>(eval(from + 2 * expr(to) * from)));
  EXPECT_EQ(eval(addcdiv(tensor::of({1.0}), tensor::of({3.0}), tensor::of({2.0}))).item(),
            scalar(2.5));
}

TEST(ElementwisePoints, HaveWeightsOfAnyDtype) {
  const tensor from = tensor::of({0.f, 0.f, 4.f, 4.f}), to = tensor::of({1.f, 1.f, 8.f, 8.f});
  const tensor weights = tensor::of<std::uint8_t>({2, 255, 3, 0});
  EXPECT_EQ(elements_of<float>(eval(lerp(from, to, weights))), (std::vector<float>{2, 255, 16, 4}));
  EXPECT_EQ(elements_of<float>(eval(lerp(from, to, astype(weights, dtype::boolean)))),
            (std::vector<float>{1, 1, 8, 4}));
}

TEST(ElementwisePoints, BetweenEndsThatAreFarApartAreFinite) {
  const tensor far = tensor::of({-3e38f}), near = tensor::of({3e38f});
  const auto single = [&](double weight) {
    return eval(lerp(far, near, weight)).item().as<float>();
  };
  EXPECT_EQ(single(0), -3e38f);
  EXPECT_EQ(single(1), 3e38f);
  EXPECT_FLOAT_EQ(single(0.25), -1.5e38f);
  EXPECT_FLOAT_EQ(single(0.75), 1.5e38f);
}

TEST(ElementwisePoints, BesideInfinitiesAreExactAtBothEnds) {
  const auto between = [](double a, double b, double weight) {
    return eval(lerp(tensor::of({a}), tensor::of({b}), weight)).item().as<double>();
  };
  for (const double bad : {infinity, -infinity, none}) {
    EXPECT_EQ(between(1, bad, 0), 1) << bad;
    EXPECT_EQ(between(bad, 1, 1), 1) << bad;
  }
  EXPECT_EQ(between(1, infinity, 1), infinity);
  EXPECT_EQ(between(1, infinity, 0.75), infinity);
  EXPECT_EQ(between(-infinity, 1, 0.25), -infinity);
  EXPECT_EQ(between(infinity, infinity, 0.5), infinity);
  EXPECT_TRUE(std::isnan(between(-infinity, infinity, 0.5)));
  EXPECT_TRUE(std::isnan(between(1, none, 0.5)));
}

TEST(ElementwiseFunctions, RefuseDtypesThatTheyAreNotDefinedFor) {
  const expr z = full({1}, std::complex<double>(1, 2)), a = full({1}, 1.5);
  const expr truth = full({1}, true);
  const auto refused = [](const std::function<expr()>& make) {
    return code_of(make) == errc::invalid_argument;
  };
  EXPECT_TRUE(refused([&] { return bitwise_left_shift(a, 1); }));
  EXPECT_TRUE(refused([&] { return bitwise_right_shift(truth, truth); }));
  for (const auto function : {&erf, &lgamma, &sigmoid, &signbit, &frac})
    EXPECT_TRUE(refused([&] { return function(z); }));
  for (const auto function : {&fmod, &copysign, &nextafter, &logaddexp})
    EXPECT_TRUE(refused([&] { return function(a, z); }));
  EXPECT_TRUE(refused([&] { return lerp(a, a, z); }));
}

}  // namespace
}  // namespace shale
