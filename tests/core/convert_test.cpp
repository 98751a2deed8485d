#include "shale/convert.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "shale/dtype.hpp"
#include "support/float_table.hpp"

namespace shale {
namespace {

// Holds every 64-bit integer exactly, and values before they wrap.
__extension__ typedef __int128 whole;

template <class T>
inline constexpr bool is_floating = std::is_floating_point_v<T> || detail::is_small_float<T>;

template <class T>
long double exact(T value) {
  if constexpr (detail::is_small_float<T>) {
    const auto& table = test::table_of<T>();
    return table.is_nan(value.bits) ? std::numeric_limits<long double>::quiet_NaN()
                                    : table.value(value.bits);
  } else {
    return static_cast<long double>(value);
  }
}

// The expected result of a conversion, computed directly from the written rules.
template <class To, class From>
void expect_converts(From source) {
  if constexpr (detail::is_complex<From>) {
    if constexpr (detail::is_complex<To>) {
      const To got = convert<To>(source);
      const To want(static_cast<typename To::value_type>(source.real()),
                    static_cast<typename To::value_type>(source.imag()));
      ASSERT_TRUE(got.real() == want.real() ||
                  (std::isnan(got.real()) && std::isnan(source.real())));
      ASSERT_TRUE(got.imag() == want.imag() ||
                  (std::isnan(got.imag()) && std::isnan(source.imag())));
    } else if constexpr (std::is_same_v<To, bool>) {
      ASSERT_EQ(convert<bool>(source), !(source.real() == 0 && source.imag() == 0));
    } else {
      const To got = convert<To>(source), want = convert<To>(source.real());
      ASSERT_EQ(std::memcmp(&got, &want, sizeof(To)), 0);
    }
  } else if constexpr (detail::is_complex<To>) {
    const To got = convert<To>(source);
    const auto want = convert<typename To::value_type>(source);
    ASSERT_TRUE(got.real() == want || (std::isnan(got.real()) && std::isnan(want)));
    ASSERT_EQ(got.imag(), 0);
  } else {
    const long double value = exact(source);
    const To got = convert<To>(source);
    if constexpr (std::is_same_v<To, bool>) {
      ASSERT_EQ(got, !(value == 0)) << static_cast<double>(value);
    } else if constexpr (std::is_integral_v<To>) {
      constexpr auto lowest = static_cast<whole>(std::numeric_limits<To>::min());
      constexpr auto highest = static_cast<whole>(std::numeric_limits<To>::max());
      whole want = 0;
      if constexpr (is_floating<From>) {
        const long double cut = std::trunc(value);
        if (std::isnan(value)) want = 0;
        else if (cut < static_cast<long double>(lowest)) want = lowest;
        else if (cut > static_cast<long double>(highest)) want = highest;
        else want = static_cast<whole>(cut);
      } else {
        const whole modulus = highest - lowest + 1;
        want = static_cast<whole>(source) % modulus;
        if (want > highest) want -= modulus;
        if (want < lowest) want += modulus;
      }
      ASSERT_EQ(got, static_cast<To>(want)) << static_cast<double>(value);
    } else if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(static_cast<double>(got)));
    } else if constexpr (detail::is_small_float<To>) {
      const auto& table = test::table_of<To>();
      ASSERT_EQ(got.bits, table.nearest(value)) << static_cast<double>(value);
    } else {
      ASSERT_EQ(got, static_cast<To>(value)) << static_cast<double>(value);
      ASSERT_EQ(std::signbit(got), std::signbit(static_cast<To>(value)));
    }
  }
}

// For narrow types, every value; for the others, the extreme values, powers of two with their
// neighbours, and samples.
template <class T>
std::vector<T> values_of() {
  std::vector<T> values;
  if constexpr (detail::is_complex<T>) {
    using Part = typename T::value_type;
    std::vector<Part> parts = values_of<Part>();
    parts.resize(std::min<std::size_t>(parts.size(), 600));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      values.emplace_back(parts[i], Part{0});
      values.emplace_back(Part{0}, parts[i]);
      values.emplace_back(parts[i], parts[parts.size() - 1 - i]);
    }
  } else if constexpr (std::is_same_v<T, bool>) {
    values = {false, true};
  } else if constexpr (detail::is_small_float<T>) {
    for (std::uint32_t bits = 0; bits < 1u << (8 * sizeof(T)); ++bits)
      values.push_back(T::from_bits(static_cast<decltype(T::bits)>(bits)));
  } else if constexpr (sizeof(T) <= 2) {
    for (int i = std::numeric_limits<T>::min(); i <= std::numeric_limits<T>::max(); ++i)
      values.push_back(static_cast<T>(i));
  } else if constexpr (std::is_integral_v<T>) {
    for (int shift = 0; shift < 8 * static_cast<int>(sizeof(T)); ++shift) {
      using Unsigned = std::make_unsigned_t<T>;
      const auto power = static_cast<Unsigned>(Unsigned{1} << shift);
      for (const Unsigned bits :
           {static_cast<Unsigned>(power - 1), power, static_cast<Unsigned>(power + 1)}) {
        values.push_back(static_cast<T>(bits));
        values.push_back(static_cast<T>(Unsigned{0} - bits));
      }
    }
    std::mt19937_64 random(1);
    for (int i = 0; i < 3000; ++i) values.push_back(static_cast<T>(random() >> (random() % 64)));
  } else {
    using limits = std::numeric_limits<T>;
    for (const T value :
         {T{0}, limits::infinity(), limits::quiet_NaN(), limits::max(), limits::min(),
          limits::denorm_min(), T{0.5}, T{1.5}, T{254.999}, T{255.5}}) {
      values.push_back(value);
      values.push_back(-value);
    }
    for (int power = -150; power < 130; ++power) {
      const T value = std::ldexp(T{1}, power);
      for (const T near :
           {value, std::nextafter(value, T{0}), std::nextafter(value, limits::max())}) {
        values.push_back(near);
        values.push_back(-near);
      }
    }
    std::mt19937_64 random(2);
    for (int i = 0; i < 3000; ++i)
      values.push_back(static_cast<T>(
          std::ldexp(static_cast<double>(static_cast<std::int64_t>(random())) / 9.3e18,
                     static_cast<int>(random() % 160) - 80)));
  }
  return values;
}

template <class From>
class Convert : public testing::Test {};

using elements =
    testing::Types<bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                   std::uint16_t, std::uint32_t, std::uint64_t, float16, bfloat16, float, double,
                   std::complex<float>, std::complex<double>, float8_e4m3fn, float8_e5m2>;
TYPED_TEST_SUITE(Convert, elements);

TYPED_TEST(Convert, FollowsTheRulesToEveryDtype) {
  for (const TypeParam value : values_of<TypeParam>()) {
    [&]<class... To>(type_list<To...>) { (expect_converts<To>(value), ...); }(all_types{});
    if (this->HasFatalFailure()) return;
  }
}

TEST(Convert, SaturatesAtTheEndsThatFloatsCannotHold) {
  EXPECT_EQ(convert<std::int64_t>(9223372036854775808.0), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(convert<std::int64_t>(std::nextafter(9223372036854775808.0, 0.0)), 9223372036854774784);
  EXPECT_EQ(convert<std::uint64_t>(-0.9), 0u);
  EXPECT_EQ(convert<std::uint64_t>(1e30f), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(convert<std::int32_t>(2147483648.0f), 2147483647);
  EXPECT_EQ(convert<std::uint8_t>(255.9f), 255);
  EXPECT_EQ(convert<std::int8_t>(-INFINITY), -128);
  EXPECT_EQ(convert<std::int16_t>(NAN), 0);
}

}  // namespace
}  // namespace shale
