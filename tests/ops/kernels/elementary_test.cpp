// Tests elementary functions: results are within 1 ulp of the next wider type's function, have the
// same bits for AVX2 and AVX-512, and do not depend on the position of an element.
#include <gtest/gtest.h>

#include <set>

#include "ops/kernels/blocks.hpp"

namespace shale::test {
namespace {

using ops::operation;

template <class T>
using wider = std::conditional_t<std::is_same_v<T, float>, double, long double>;

/// The distance of `got` from `exact` in units in the last place of T at `exact`. An infinity
/// counts as the power of two above the largest number.
template <class T>
double ulps(T got, wider<T> exact) {
  using limits = std::numeric_limits<T>;
  if (std::isnan(exact) || std::isnan(got)) return std::isnan(exact) == std::isnan(got) ? 0 : 1e9;
  const auto rounded = static_cast<T>(exact);
  if (got == rounded) return std::signbit(got) == std::signbit(rounded) ? 0 : 1e9;
  const auto beyond = std::ldexp(wider<T>(1), limits::max_exponent);
  const auto finite = [&](auto value) {
    return std::isinf(value) ? std::copysign(beyond, static_cast<wider<T>>(value))
                             : static_cast<wider<T>>(value);
  };
  int exponent = 0;
  std::frexp(finite(exact), &exponent);
  const int last = std::max(exponent - limits::digits, limits::min_exponent - limits::digits);
  return static_cast<double>(std::fabs(finite(got) - finite(exact)) /
                             std::ldexp(wider<T>(1), last));
}

struct function {
  operation op;
  double (*in_double)(double);
  long double (*in_long_double)(long double);
};

const function functions[] = {{operation::exponential, std::exp, std::exp},
                              {operation::logarithm, std::log, std::log},
                              {operation::logarithm_2, std::log2, std::log2},
                              {operation::logarithm_10, std::log10, std::log10},
                              {operation::sine, std::sin, std::sin},
                              {operation::cosine, std::cos, std::cos},
                              {operation::tangent, std::tan, std::tan},
                              {operation::arc_sine, std::asin, std::asin},
                              {operation::arc_cosine, std::acos, std::acos},
                              {operation::arc_tangent, std::atan, std::atan},
                              {operation::hyperbolic_sine, std::sinh, std::sinh},
                              {operation::hyperbolic_cosine, std::cosh, std::cosh},
                              {operation::hyperbolic_tangent, std::tanh, std::tanh},
                              {operation::exponential_2, std::exp2, std::exp2},
                              {operation::exponential_minus_1, std::expm1, std::expm1},
                              {operation::logarithm_of_1_plus, std::log1p, std::log1p},
                              {operation::area_sine, std::asinh, std::asinh},
                              {operation::area_cosine, std::acosh, std::acosh},
                              {operation::area_tangent, std::atanh, std::atanh},
                              {operation::cube_root, std::cbrt, std::cbrt},
                              {operation::error_function, std::erf, std::erf},
                              {operation::logarithm_of_gamma, std::lgamma, std::lgamma}};

template <class T>
wider<T> exact(const function& tested, T value) {
  if constexpr (std::is_same_v<T, float>) return tested.in_double(value);
  else return tested.in_long_double(value);
}

/// Arguments of every size: many near 0 and 1, some near the limits of overflow.
template <class T>
std::vector<T> arguments(std::size_t count, unsigned seed) {
  generator random(seed);
  std::vector<T> result(count);
  const double ends = std::is_same_v<T, float> ? 100 : 760;
  for (T& value : result) {
    switch (random() % 4) {
      case 0:
        value = some_value<T>(random);
        break;
      case 1:
        value = bits_to<T>(random());
        break;
      case 2:
        value = static_cast<T>(std::uniform_real_distribution(-ends, ends)(random));
        break;
      default:
        value = static_cast<T>(std::uniform_real_distribution(-2.0, 2.0)(random));
    }
    if (value != value) value = std::numeric_limits<T>::quiet_NaN();
  }
  return result;
}

template <class T>
std::vector<T> applied(ops::kernel compute, const std::vector<T>& a,
                       const std::vector<T>* b = nullptr) {
  std::vector<T> out(a.size());
  auto bytes = [](const std::vector<T>& values) {
    return reinterpret_cast<std::byte*>(const_cast<T*>(values.data()));
  };
  std::byte* data[] = {bytes(out), bytes(a), b ? bytes(*b) : nullptr};
  constexpr auto item = static_cast<index_t>(sizeof(T));
  const index_t one[] = {item, item, 0, 0};
  const index_t two[] = {item, item, item, 0, 0, 0};
  compute(data, b ? two : one, static_cast<index_t>(a.size()), 1);
  return out;
}

ops::kernel find(ops::isa isa, operation op, dtype type) {
  return ops::kernels_for(isa).operations[static_cast<int>(op)][static_cast<int>(type)];
}

template <class T>
class Elementary : public testing::Test {};
using float_list = testing::Types<float, double>;
TYPED_TEST_SUITE(Elementary, float_list);

constexpr double ulps_max = 1;

TYPED_TEST(Elementary, AreWithinOneUlp) {
  using T = TypeParam;
  const std::vector<T> values = arguments<T>(40001, 7);
  for (const function& tested : functions) {
    for (const ops::isa isa : usable_isas()) {
      const std::vector<T> got = applied(find(isa, tested.op, dtype_of<T>()), values);
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_LE(ulps<T>(got[i], exact<T>(tested, values[i])), ulps_max)
            << "operation " << static_cast<int>(tested.op) << " with " << name(isa) << " of "
            << show(values[i]) << ": got " << show(got[i]);
    }
  }
}

// log(1 + x) is x - x^2 / 2 + …, so it rounds to x, with its sign, if x is less than epsilon / 2.
TYPED_TEST(Elementary, LogarithmsOfOnePlusTinyNumbersAreTheseNumbers) {
  using T = TypeParam;
  using limits = std::numeric_limits<T>;
  std::vector<T> values;
  for (const T sign : {T(1), T(-1)}) {
    for (int k = 0; k < 40; ++k) values.push_back(sign * static_cast<T>(k) * limits::denorm_min());
    for (int exponent = limits::min_exponent - 4; exponent < -limits::digits - 2; ++exponent)
      values.push_back(sign * std::ldexp(T(1.25), exponent));
  }
  for (const ops::isa isa : usable_isas()) {
    const std::vector<T> got =
        applied(find(isa, operation::logarithm_of_1_plus, dtype_of<T>()), values);
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_TRUE(same(got[i], values[i]))
          << name(isa) << " log1p(" << show(values[i]) << "): got " << show(got[i]);
  }
}

TYPED_TEST(Elementary, PowersAnglesAndHypotenusesAreWithinOneUlp) {
  using T = TypeParam;
  const std::vector<T> a = arguments<T>(40001, 8);
  std::vector<T> b = arguments<T>(40001, 9);
  for (std::size_t i = 0; i < b.size(); i += 3) b[i] = std::nearbyint(b[i]);
  for (const ops::isa isa : usable_isas()) {
    const std::vector<T> powers = applied(find(isa, operation::power, dtype_of<T>()), a, &b);
    const std::vector<T> angles = applied(find(isa, operation::atan2, dtype_of<T>()), a, &b);
    const std::vector<T> lengths = applied(find(isa, operation::hypotenuse, dtype_of<T>()), a, &b);
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_LE(ulps<T>(powers[i], std::pow(wider<T>(a[i]), wider<T>(b[i]))), ulps_max)
          << name(isa) << ' ' << show(a[i]) << " to the power " << show(b[i]) << ": got "
          << show(powers[i]);
      ASSERT_LE(ulps<T>(angles[i], std::atan2(wider<T>(a[i]), wider<T>(b[i]))), ulps_max)
          << name(isa) << " atan2(" << show(a[i]) << ", " << show(b[i]) << "): got "
          << show(angles[i]);
      ASSERT_LE(ulps<T>(lengths[i], std::hypot(wider<T>(a[i]), wider<T>(b[i]))), ulps_max)
          << name(isa) << " hypot(" << show(a[i]) << ", " << show(b[i]) << "): got "
          << show(lengths[i]);
    }
  }
}

TYPED_TEST(Elementary, AreFiniteUpToTheLimitOfOverflow) {
  using T = TypeParam;
  generator random(12);
  const auto largest = static_cast<double>(std::log(std::numeric_limits<T>::max()));
  const double bits = std::log2(std::numeric_limits<T>::max());
  std::vector<T> x, y, z;
  for (int i = 0; i < 40001; ++i) {
    const double below = std::exp(std::uniform_real_distribution(-35.0, 0.0)(random));
    x.push_back(static_cast<T>(largest - (i % 4 == 3 ? -below : below)));
    y.push_back(static_cast<T>(std::exp(std::uniform_real_distribution(0.01, largest)(random))));
    z.push_back(static_cast<T>((bits - below) / std::log2(y.back())));
  }
  y.push_back(std::numeric_limits<T>::max());
  z.push_back(1);
  y.push_back(-std::numeric_limits<T>::max());
  z.push_back(1);
  for (const ops::isa isa : usable_isas()) {
    for (const function& tested : functions) {
      if (tested.op != operation::exponential && tested.op != operation::exponential_minus_1)
        continue;
      const std::vector<T> got = applied(find(isa, tested.op, dtype_of<T>()), x);
      for (std::size_t i = 0; i < x.size(); ++i)
        ASSERT_LE(ulps<T>(got[i], exact<T>(tested, x[i])), ulps_max)
            << name(isa) << " exp(" << show(x[i]) << "): got " << show(got[i]);
    }
    const std::vector<T> powers = applied(find(isa, operation::power, dtype_of<T>()), y, &z);
    for (std::size_t i = 0; i < y.size(); ++i)
      ASSERT_LE(ulps<T>(powers[i], std::pow(wider<T>(y[i]), wider<T>(z[i]))), ulps_max)
          << name(isa) << ' ' << show(y[i]) << " to the power " << show(z[i]) << ": got "
          << show(powers[i]);
  }
}

TYPED_TEST(Elementary, DoNotDependOnNeighbours) {
  using T = TypeParam;
  const std::vector<T> values = arguments<T>(4001, 10);
  const std::vector<T> others = arguments<T>(4001, 11);
  for (const ops::isa isa : usable_isas()) {
    for (const function& tested : functions) {
      const ops::kernel kernel = find(isa, tested.op, dtype_of<T>());
      const std::vector<T> together = applied(kernel, values);
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_TRUE(same(applied(kernel, std::vector<T>{values[i]})[0], together[i]))
            << "operation " << static_cast<int>(tested.op) << " with " << name(isa) << " of "
            << show(values[i]);
    }
    for (const operation tested : {operation::power, operation::atan2, operation::hypotenuse}) {
      const ops::kernel kernel = find(isa, tested, dtype_of<T>());
      const std::vector<T> together = applied(kernel, values, &others);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::vector<T> b{others[i]};
        ASSERT_TRUE(same(applied(kernel, std::vector<T>{values[i]}, &b)[0], together[i]))
            << "operation " << static_cast<int>(tested) << " with " << name(isa) << " of "
            << show(values[i]) << " and " << show(others[i]);
      }
    }
  }
}

// A quiet and a signalling NaN, of both signs.
template <class T>
std::vector<T> nans() {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const auto infinity = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  constexpr Bits sign = Bits{1} << (8 * sizeof(T) - 1);
  std::vector<T> result = {std::numeric_limits<T>::quiet_NaN(),
                           -std::numeric_limits<T>::quiet_NaN()};
  for (const Bits bits : {infinity | 1, infinity | 1 | sign}) result.push_back(bits_to<T>(bits));
  return result;
}

// Instructions make a signalling NaN quiet, but functions of the C library also look at its kind.
TYPED_TEST(Elementary, KnowNoKindsOfNans) {
  using T = TypeParam;
  constexpr T infinity = std::numeric_limits<T>::infinity();
  const std::vector<T> others = {0, -T(0), 1, -1, T(0.5), 2, -3, infinity, -infinity};
  std::vector<T> a, b;
  for (const T nan : nans<T>()) {
    for (const T other : others) {
      a.insert(a.end(), {nan, other});
      b.insert(b.end(), {other, nan});
    }
    for (const T other : nans<T>()) {
      a.push_back(nan);
      b.push_back(other);
    }
  }
  for (const ops::isa isa : usable_isas()) {
    for (const function& tested : functions)
      for (const T nan : applied(find(isa, tested.op, dtype_of<T>()), nans<T>()))
        EXPECT_NE(nan, nan) << name(isa) << ", operation " << static_cast<int>(tested.op);
    const std::vector<T> powers = applied(find(isa, operation::power, dtype_of<T>()), a, &b);
    const std::vector<T> angles = applied(find(isa, operation::atan2, dtype_of<T>()), a, &b);
    const std::vector<T> lengths = applied(find(isa, operation::hypotenuse, dtype_of<T>()), a, &b);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const std::string operands = show(a[i]) + ", " + show(b[i]);
      if (a[i] == 1 || b[i] == 0) EXPECT_EQ(powers[i], 1) << name(isa) << " pow " << operands;
      else EXPECT_NE(powers[i], powers[i]) << name(isa) << " pow " << operands;
      EXPECT_NE(angles[i], angles[i]) << name(isa) << " atan2 " << operands;
      if (std::isinf(a[i]) || std::isinf(b[i]))
        EXPECT_EQ(lengths[i], infinity) << name(isa) << " hypot " << operands;
      else EXPECT_NE(lengths[i], lengths[i]) << name(isa) << " hypot " << operands;
    }
  }
}

TYPED_TEST(Elementary, HaveTheSameBitsForAvx2AndAvx512) {
  using T = TypeParam;
  const std::vector<T> values = arguments<T>(20001, 12);
  const std::vector<T> others = arguments<T>(20001, 13);
  for (const ops::isa isa : usable_isas()) {
    if (isa <= ops::isa::avx2) continue;
    const auto expect_same = [&](operation op, const std::vector<T>* b) {
      const auto two = applied(find(ops::isa::avx2, op, dtype_of<T>()), values, b);
      const auto more = applied(find(isa, op, dtype_of<T>()), values, b);
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_TRUE(same(two[i], more[i]))
            << "operation " << static_cast<int>(op) << " of " << show(values[i]);
    };
    for (const function& tested : functions) expect_same(tested.op, nullptr);
    expect_same(operation::power, &others);
    expect_same(operation::atan2, &others);
    expect_same(operation::hypotenuse, &others);
  }
}

/// Every 65521st float32, and the neighbours of arguments at which a function of float32 changes
/// its interval or its method: powers of two, multiples of pi / 2 and of ln 2 / 2, and limits.
std::vector<float> turning_points() {
  std::vector<double> centres = {89, 104, 88.7228, 9.3, 1.0 / 3, 0x1p-126};
  for (int exponent = -30; exponent <= 40; ++exponent)
    for (const double part : {1.0, 4.0 / 3, 1.5}) centres.push_back(std::ldexp(part, exponent));
  for (int k = 1; k < 2000; ++k) {
    centres.push_back(k * std::acos(0.0));
    centres.push_back(k * 345678.0 * std::acos(0.0));
    if (k < 320) centres.push_back(k * std::log(2.0) / 2);
  }
  std::vector<float> result;
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += 65521)
    result.push_back(bits_to<float>(bits));
  for (const double centre : centres) {
    const auto middle = std::bit_cast<std::uint32_t>(static_cast<float>(centre));
    for (std::uint32_t bits = middle - 8; bits <= middle + 8; ++bits)
      for (const float x : {bits_to<float>(bits), -bits_to<float>(bits)}) result.push_back(x);
  }
  return result;
}

TEST(FloatFunctions, AreWithinOneUlpWhereTheyChangeTheirMethod) {
  const std::vector<float> values = turning_points();
  for (const function& tested : functions) {
    if (!std::set{operation::exponential, operation::logarithm, operation::sine, operation::cosine,
                  operation::hyperbolic_tangent}
             .contains(tested.op))
      continue;
    std::vector<double> wanted(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) wanted[i] = exact<float>(tested, values[i]);
    std::vector<float> narrower;
    for (const ops::isa isa : usable_isas()) {
      const std::vector<float> got = applied(find(isa, tested.op, dtype::float32), values);
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_LE(ulps<float>(got[i], wanted[i]), ulps_max)
            << "operation " << static_cast<int>(tested.op) << " with " << name(isa) << " of "
            << show(values[i]) << ": got " << show(got[i]);
      for (std::size_t i = 0; isa > ops::isa::avx2 && i < values.size(); ++i)
        ASSERT_TRUE(same(narrower[i], got[i]))
            << "operation " << static_cast<int>(tested.op) << " of " << show(values[i]);
      narrower = got;
    }
  }
}

TEST(FloatFunctions, AreExactAtZerosAndInfinities) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const struct {
    operation op;
    float x;
    float wanted;
  } cases[] = {{operation::exponential, -0.0f, 1},
               {operation::exponential, infinity, infinity},
               {operation::exponential, -infinity, 0},
               {operation::exponential, 3e38f, infinity},
               {operation::logarithm, 1, 0},
               {operation::logarithm, 0, -infinity},
               {operation::logarithm, -0.0f, -infinity},
               {operation::logarithm, infinity, infinity},
               {operation::sine, -0.0f, -0.0f},
               {operation::sine, 0, 0},
               {operation::sine, -1e-45f, -1e-45f},
               {operation::cosine, -0.0f, 1},
               {operation::hyperbolic_tangent, -0.0f, -0.0f},
               {operation::hyperbolic_tangent, 1e-45f, 1e-45f},
               {operation::hyperbolic_tangent, infinity, 1},
               {operation::hyperbolic_tangent, -3e38f, -1}};
  for (const ops::isa isa : usable_isas()) {
    for (const auto& [op, x, wanted] : cases) {
      const float got = applied(find(isa, op, dtype::float32), std::vector<float>{x})[0];
      EXPECT_TRUE(same(got, wanted)) << name(isa) << ", operation " << static_cast<int>(op)
                                     << " of " << show(x) << ": got " << show(got);
    }
    for (const operation op : {operation::sine, operation::cosine})
      EXPECT_TRUE(
          std::isnan(applied(find(isa, op, dtype::float32), std::vector<float>{1, infinity})[1]));
    EXPECT_TRUE(std::isnan(
        applied(find(isa, operation::logarithm, dtype::float32), std::vector<float>{-1})[0]));
  }
}

/// log |gamma(x)| by Stirling's series, at an argument that the recurrence moved beyond 30, and by
/// the reflection for negative numbers.
long double stirling(long double x) {
  constexpr long double pi = 3.14159265358979323846264338327950288L;
  if (x < 0.5L) {
    const long double turn = x - 2 * std::floor(x / 2);  // exact, so that the sine is
    return std::log(pi / std::fabs(std::sin(pi * turn))) - stirling(1 - x);
  }
  long double factors = 1;
  for (; x < 30; x += 1) factors *= x;
  const long double square = x * x;
  const long double series =
      (1 / 12.0L -
       (1 / 360.0L - (1 / 1260.0L - (1 / 1680.0L - 1 / 1188.0L / square) / square) / square) /
           square) /
      x;
  return (x - 0.5L) * std::log(x) - x + std::log(2 * pi) / 2 + series - std::log(factors);
}

TYPED_TEST(Elementary, LogarithmsOfGammaAgreeWithStirlingsSeries) {
  using T = TypeParam;
  generator random(21);
  std::vector<T> values;
  for (int i = 0; i < 4000; ++i)
    values.push_back(static_cast<T>(std::uniform_real_distribution(
        i % 3 == 0 ? -20.0 : 0.0, i % 2 == 0 ? 4.0 : 150.0)(random)));
  const std::vector<T> got =
      applied(ops::find_kernel(operation::logarithm_of_gamma, dtype_of<T>()), values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const long double wanted = stirling(values[i]);
    ASSERT_NEAR(static_cast<double>(got[i]), static_cast<double>(wanted),
                static_cast<double>(std::numeric_limits<T>::epsilon() * std::fabs(wanted) + 1e-16L))
        << show(values[i]);
  }
  const T infinity = std::numeric_limits<T>::infinity();
  const std::vector<T> ends{0, -T(0), -1, -7, infinity, -infinity};
  for (const T end : applied(ops::find_kernel(operation::logarithm_of_gamma, dtype_of<T>()), ends))
    EXPECT_EQ(end, infinity);
}

template <class Part>
void expect_complex(operation op,
                    std::complex<long double> (*oracle)(const std::complex<long double>&)) {
  using T = std::complex<Part>;
  generator random(5);
  std::vector<T> values(2000);
  for (T& value : values) {
    std::uniform_real_distribution<double> part(-3, 3);
    value = T(static_cast<Part>(part(random)), static_cast<Part>(part(random)));
  }
  const std::vector<T> got = applied(ops::find_kernel(op, dtype_of<T>()), values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::complex<long double> wanted = oracle(
        {static_cast<long double>(values[i].real()), static_cast<long double>(values[i].imag())});
    const long double error =
        std::abs(std::complex<long double>(got[i].real(), got[i].imag()) - wanted);
    ASSERT_LE(error, 8 * std::numeric_limits<Part>::epsilon() * std::max(1.0L, std::abs(wanted)))
        << static_cast<int>(op) << " of " << show(values[i]) << ": got " << show(got[i]);
  }
}

TYPED_TEST(Elementary, OfComplexNumbersAgreeWithLongDouble) {
  using L = std::complex<long double>;
  expect_complex<TypeParam>(operation::square_root, [](const L& a) { return std::sqrt(a); });
  expect_complex<TypeParam>(operation::exponential, [](const L& a) { return std::exp(a); });
  expect_complex<TypeParam>(operation::logarithm, [](const L& a) { return std::log(a); });
  expect_complex<TypeParam>(operation::logarithm_2,
                            [](const L& a) { return std::log(a) / std::log(2.0L); });
  expect_complex<TypeParam>(operation::logarithm_10, [](const L& a) { return std::log10(a); });
  expect_complex<TypeParam>(operation::sine, [](const L& a) { return std::sin(a); });
  expect_complex<TypeParam>(operation::cosine, [](const L& a) { return std::cos(a); });
  expect_complex<TypeParam>(operation::tangent, [](const L& a) { return std::tan(a); });
  expect_complex<TypeParam>(operation::arc_sine, [](const L& a) { return std::asin(a); });
  expect_complex<TypeParam>(operation::arc_cosine, [](const L& a) { return std::acos(a); });
  expect_complex<TypeParam>(operation::arc_tangent, [](const L& a) { return std::atan(a); });
  expect_complex<TypeParam>(operation::hyperbolic_sine, [](const L& a) { return std::sinh(a); });
  expect_complex<TypeParam>(operation::hyperbolic_cosine, [](const L& a) { return std::cosh(a); });
  expect_complex<TypeParam>(operation::hyperbolic_tangent, [](const L& a) { return std::tanh(a); });
  expect_complex<TypeParam>(operation::area_sine, [](const L& a) { return std::asinh(a); });
  expect_complex<TypeParam>(operation::area_cosine, [](const L& a) { return std::acosh(a); });
  expect_complex<TypeParam>(operation::area_tangent, [](const L& a) { return std::atanh(a); });
  expect_complex<TypeParam>(operation::exponential_2,
                            [](const L& a) { return std::exp(a * std::log(2.0L)); });
  expect_complex<TypeParam>(operation::exponential_minus_1,
                            [](const L& a) { return std::exp(a) - 1.0L; });
  expect_complex<TypeParam>(operation::logarithm_of_1_plus,
                            [](const L& a) { return std::log(1.0L + a); });
}

// Near 0, each part is accurate on its own. The oracles are the beginnings of the series.
TYPED_TEST(Elementary, OfSmallComplexNumbersLoseNothing) {
  using T = std::complex<TypeParam>;
  using L = std::complex<long double>;
  generator random(6);
  std::vector<T> values(2000);
  for (T& value : values) {
    const auto part = [&] {
      const double size = std::exp(std::uniform_real_distribution(-30.0, -16.0)(random));
      return static_cast<TypeParam>(random() % 2 == 0 ? size : -size);
    };
    value = {part(), part()};
  }
  const auto expect = [&](operation op, auto series) {
    const std::vector<T> got = applied(ops::find_kernel(op, dtype_of<T>()), values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const L wanted = series(L(values[i].real(), values[i].imag()));
      const long double most = 8 * std::numeric_limits<TypeParam>::epsilon();
      ASSERT_NEAR(got[i].real(), wanted.real(), most * std::fabs(wanted.real())) << show(values[i]);
      ASSERT_NEAR(got[i].imag(), wanted.imag(), most * std::fabs(wanted.imag())) << show(values[i]);
    }
  };
  expect(operation::exponential_minus_1,
         [](const L& a) { return a + a * a / 2.0L + a * a * a / 6.0L; });
  expect(operation::logarithm_of_1_plus,
         [](const L& a) { return a - a * a / 2.0L + a * a * a / 3.0L; });
}

// An infinite exponent decides alone: what the other part turns is 0, or infinite.
TYPED_TEST(Elementary, OfComplexNumbersWithInfiniteRealPartAreThoseOfTheLimit) {
  using T = std::complex<TypeParam>;
  constexpr TypeParam infinity = std::numeric_limits<TypeParam>::infinity();
  constexpr TypeParam nan = std::numeric_limits<TypeParam>::quiet_NaN();
  const std::vector<TypeParam> parts{-8, -2, TypeParam(1.5), 2, infinity, -infinity, nan};
  std::vector<T> low, high;
  for (const TypeParam part : parts) {
    low.emplace_back(-infinity, part);
    high.emplace_back(infinity, part);
  }
  for (const auto& [op, least] : {std::pair(operation::exponential, TypeParam(0)),
                                  std::pair(operation::exponential_2, TypeParam(0)),
                                  std::pair(operation::exponential_minus_1, TypeParam(-1))}) {
    const ops::kernel kernel = ops::find_kernel(op, dtype_of<T>());
    const std::vector<T> limits = applied(kernel, low), large = applied(kernel, high);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::string what = "operation " + std::to_string(static_cast<int>(op)) +
                               ", imaginary part " + show(parts[i]);
      EXPECT_TRUE(limits[i].real() == least && limits[i].imag() == 0)
          << what << ": " << show(limits[i]);
      EXPECT_TRUE(std::isinf(large[i].real())) << what << ": " << show(large[i]);
      EXPECT_EQ(std::isnan(large[i].imag()), !std::isfinite(parts[i]))
          << what << ": " << show(large[i]);
    }
  }
}

TYPED_TEST(Elementary, SignsOfComplexNumbersWithNanAreNan) {
  using T = std::complex<TypeParam>;
  constexpr TypeParam infinity = std::numeric_limits<TypeParam>::infinity();
  constexpr TypeParam nan = std::numeric_limits<TypeParam>::quiet_NaN();
  std::vector<T> values;
  for (const TypeParam part : {TypeParam(0), TypeParam(-0.0), TypeParam(2), infinity, nan}) {
    values.emplace_back(part, nan);
    values.emplace_back(nan, part);
  }
  for (const ops::isa isa : usable_isas()) {
    const std::vector<T> got = applied(find(isa, operation::sign, dtype_of<T>()), values);
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_TRUE(std::isnan(got[i].real()) && std::isnan(got[i].imag()))
          << name(isa) << " sign of " << show(values[i]) << ": got " << show(got[i]);
  }
}

// A real number as a complex one stays real, and so do infinities.
TYPED_TEST(Elementary, OfComplexNumbersWithoutImaginaryPartAreReal) {
  using T = std::complex<TypeParam>;
  constexpr TypeParam infinity = std::numeric_limits<TypeParam>::infinity();
  for (const TypeParam x : {-infinity, TypeParam(-2), TypeParam(0.25), TypeParam(3), infinity})
    for (const TypeParam zero : {TypeParam(0), TypeParam(-0.0)}) {
      const std::vector<T> value{{x, zero}};
      const T doubled =
          applied(ops::find_kernel(operation::exponential_2, dtype_of<T>()), value)[0];
      const T less =
          applied(ops::find_kernel(operation::exponential_minus_1, dtype_of<T>()), value)[0];
      const wider<TypeParam> wide_x = x;
      EXPECT_LE(ulps<TypeParam>(doubled.real(), std::exp2(wide_x)), ulps_max) << show(value[0]);
      EXPECT_LE(ulps<TypeParam>(less.real(), std::expm1(wide_x)), ulps_max) << show(value[0]);
      EXPECT_TRUE(doubled.imag() == 0 && less.imag() == 0) << show(value[0]);
      EXPECT_EQ(std::signbit(less.imag()), std::signbit(zero)) << show(value[0]);
    }
}

}  // namespace
}  // namespace shale::test
