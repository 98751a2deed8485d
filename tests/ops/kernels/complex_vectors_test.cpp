// Tests the exponential of complex numbers. The oracle is the C library's function of the next wider
// type.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "ops/kernels/blocks.hpp"

namespace shale::test {
namespace {

using ops::operation;

template <class T>
using wider = std::conditional_t<std::is_same_v<T, float>, double, long double>;

template <class T>
using numbers = std::vector<std::complex<T>>;

/// The distance of `got` from `wanted` in units in the last place of `magnitude`, or of `wanted` if
/// that is NaN. An infinity counts as the power of two above the largest number.
template <class T>
double units(T got, wider<T> wanted, wider<T> magnitude) {
  using limits = std::numeric_limits<T>;
  if (std::isnan(got) || std::isnan(wanted)) return std::isnan(got) == std::isnan(wanted) ? 0 : 1e9;
  const auto beyond = std::ldexp(wider<T>(1), limits::max_exponent);
  const auto finite = [&](wider<T> value) { return std::clamp(value, -beyond, beyond); };
  int exponent = 0;
  std::frexp(finite(std::isnan(magnitude) ? wanted : magnitude), &exponent);
  const int last = std::max(exponent - limits::digits, limits::min_exponent - limits::digits);
  return static_cast<double>(std::fabs(finite(got) - finite(wanted)) /
                             std::ldexp(wider<T>(1), last));
}

template <class T>
numbers<T> exponentials(ops::isa isa, const numbers<T>& a) {
  numbers<T> out(a.size());
  std::byte* data[] = {reinterpret_cast<std::byte*>(out.data()),
                       reinterpret_cast<std::byte*>(const_cast<std::complex<T>*>(a.data()))};
  constexpr auto item = static_cast<index_t>(sizeof(std::complex<T>));
  const index_t strides[] = {item, item, 0, 0};
  constexpr auto row = static_cast<int>(operation::exponential);
  ops::kernels_for(isa).operations[row][static_cast<int>(dtype_of<std::complex<T>>())](
      data, strides, static_cast<index_t>(a.size()), 1);
  return out;
}

// Parts of every size, and every pair of special parts.
template <class T>
numbers<T> arguments() {
  using limits = std::numeric_limits<T>;
  generator random(11);
  const double ends = std::is_same_v<T, float> ? 100 : 740;
  const auto part = [&]() -> T {
    switch (random() % 3) {
      case 0:
        return some_value<T>(random);
      case 1:
        return static_cast<T>(std::uniform_real_distribution(-ends, ends)(random));
      default:
        return static_cast<T>(std::uniform_real_distribution(-2.0, 2.0)(random));
    }
  };
  numbers<T> result;
  for (int k = 0; k < 20'000; ++k) {
    const T real = part();
    result.emplace_back(real, part());
  }
  const T special[] = {0,
                       -T(0),
                       limits::denorm_min(),
                       1,
                       T(-87.5),
                       T(88.5),
                       T(89.5),
                       T(-709.5),
                       T(709.9),
                       T(1e9),
                       T(1.2e9),
                       limits::max(),
                       -limits::max(),
                       limits::infinity(),
                       -limits::infinity(),
                       limits::quiet_NaN()};
  for (const T real : special)
    for (const T imaginary : special) result.emplace_back(real, imaginary);
  return result;
}

template <class T>
class ComplexExponential : public testing::Test {};
using parts_list = testing::Types<float, double>;
TYPED_TEST_SUITE(ComplexExponential, parts_list);

TYPED_TEST(ComplexExponential, IsWithinFourUlpOfTheMagnitude) {
  using T = TypeParam;
  const numbers<T> values = arguments<T>();
  for (const ops::isa isa : usable_isas()) {
    const numbers<T> got = exponentials(isa, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto wanted = std::exp(std::complex<wider<T>>(values[i]));
      const wider<T> magnitude = std::abs(wanted);
      const bool is_close = units<T>(got[i].real(), wanted.real(), magnitude) <= 4 &&
                            units<T>(got[i].imag(), wanted.imag(), magnitude) <= 4;
      ASSERT_TRUE(is_close) << name(isa) << " of " << values[i] << ": got " << got[i] << ", wanted "
                            << wanted;
    }
  }
}

// Of a number with the imaginary part 0, with its sign; and of the real part 0, within 1 ulp.
TYPED_TEST(ComplexExponential, KeepsAnImaginaryZero) {
  using T = TypeParam;
  numbers<T> values;
  for (int k = -50; k < 50; ++k)
    for (const T zero : {T(0), -T(0)}) values.emplace_back(static_cast<T>(k) / 4, zero);
  for (const ops::isa isa : usable_isas()) {
    const numbers<T> got = exponentials(isa, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(got[i].imag(), 0) << name(isa) << " of " << values[i];
      EXPECT_EQ(std::signbit(got[i].imag()), std::signbit(values[i].imag())) << values[i];
      EXPECT_LE(
          units<T>(got[i].real(), std::exp(static_cast<wider<T>>(values[i].real())), got[i].real()),
          1.5)
          << name(isa) << " of " << values[i];
    }
  }
}

// Neighbours of all kinds, and all lengths, so that every lane and every tail is reached.
TYPED_TEST(ComplexExponential, DependsOnTheNumberAlone) {
  using T = TypeParam;
  const numbers<T> values = arguments<T>();
  numbers<T> narrower;
  for (const ops::isa isa : usable_isas()) {
    const numbers<T> all = exponentials(isa, values);
    for (std::size_t first = 0; first < values.size(); first += 37) {
      const std::size_t count = std::min<std::size_t>(first % 41, values.size() - first);
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
      const numbers<T> some(begin, begin + static_cast<std::ptrdiff_t>(count));
      const numbers<T> got = exponentials(isa, some);
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_TRUE(same(got[i].real(), all[first + i].real()) &&
                    same(got[i].imag(), all[first + i].imag()))
            << name(isa) << " of " << some[i];
    }
    for (std::size_t i = 0; isa > ops::isa::avx2 && i < values.size(); ++i)
      ASSERT_TRUE(same(narrower[i].real(), all[i].real()) &&
                  same(narrower[i].imag(), all[i].imag()))
          << values[i];
    narrower = all;
  }
}

}  // namespace
}  // namespace shale::test
