// Compares the small floats with tables of all their values (tests/support/float_table.hpp).
#include "shale/small_floats.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "shale/convert.hpp"
#include "support/float_table.hpp"

namespace shale {
namespace {

template <class T>
class SmallFloat : public testing::Test {
 public:
  using bits_type = decltype(T::bits);
  static constexpr std::uint32_t patterns = 1u << (8 * sizeof(T));
  const test::float_table& table = test::table_of<T>();

  // Whether rounding `number` (of any arithmetic type) gives the value in the table.
  template <class Number>
  void expect_nearest(Number number) {
    const auto exact = static_cast<long double>(number);
    ASSERT_EQ(static_cast<Number>(exact), number) << "the oracle's long double is too narrow";
    ASSERT_EQ(convert<T>(number).bits, table.nearest(exact)) << static_cast<double>(exact);
  }
};

using formats = testing::Types<float16, bfloat16, float8_e4m3fn, float8_e5m2>;
TYPED_TEST_SUITE(SmallFloat, formats);

TYPED_TEST(SmallFloat, EveryPatternHasItsValue) {
  for (std::uint32_t pattern = 0; pattern < this->patterns; ++pattern) {
    const float value = TypeParam::from_bits(static_cast<decltype(TypeParam::bits)>(pattern));
    if (this->table.is_nan(pattern)) {
      ASSERT_TRUE(std::isnan(value)) << pattern;
    } else {
      ASSERT_EQ(static_cast<long double>(value), this->table.value(pattern)) << pattern;
      ASSERT_EQ(std::signbit(value), pattern >= this->patterns / 2) << pattern;
    }
  }
}

TYPED_TEST(SmallFloat, EveryPatternRoundTripsThroughFloatAndDouble) {
  for (std::uint32_t pattern = 0; pattern < this->patterns; ++pattern) {
    const auto element = TypeParam::from_bits(static_cast<decltype(TypeParam::bits)>(pattern));
    // A signalling NaN becomes the quiet NaN with the same payload.
    const auto quiet_bit = std::is_same_v<TypeParam, float8_e4m3fn> ? 0u
                           : this->table.is_nan(pattern)
                               ? 1u << (test::format_of<TypeParam>().mantissa_bits - 1)
                               : 0u;
    ASSERT_EQ(TypeParam(static_cast<float>(element)).bits, pattern | quiet_bit);
    ASSERT_EQ(convert<TypeParam>(convert<float>(element)).bits, pattern | quiet_bit);
    ASSERT_EQ(convert<TypeParam>(convert<double>(element)).bits, pattern | quiet_bit);
    ASSERT_EQ(convert<TypeParam>(element).bits, pattern);
  }
}

TYPED_TEST(SmallFloat, RoundsEveryBoundaryToTheNearestEven) {
  const auto& values = this->table.magnitudes();
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    for (const long double size : {values[i], (values[i] + values[i + 1]) / 2}) {
      for (const long double number : {size, -size}) {
        const auto narrow = static_cast<float>(number);
        const auto wide = static_cast<double>(number);
        this->expect_nearest(narrow);
        this->expect_nearest(std::nextafter(narrow, INFINITY));
        this->expect_nearest(std::nextafter(narrow, -INFINITY));
        this->expect_nearest(wide);
        // A double next to a tie rounds to the tie when it is first rounded to float, so rounding
        // twice gives a wrong result here.
        this->expect_nearest(std::nextafter(wide, static_cast<double>(INFINITY)));
        this->expect_nearest(std::nextafter(wide, -static_cast<double>(INFINITY)));
        if (this->HasFailure()) return;
      }
    }
  }
}

TYPED_TEST(SmallFloat, RoundsSampledFloatsAndDoublesToTheNearestEven) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 1'000'000; ++i) {
    const auto narrow = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    const auto wide = std::bit_cast<double>(random());
    if (std::isfinite(narrow)) this->expect_nearest(narrow);
    if (std::isfinite(wide) && wide != 0) {
      this->expect_nearest(wide);
      // Random doubles of all exponents are mostly outside of the formats' ranges; these are
      // inside.
      const int exponent = static_cast<int>(random() % 320) - 160;
      this->expect_nearest(std::ldexp(wide, exponent - std::ilogb(wide)));
    }
    if (this->HasFailure()) return;
  }
}

TYPED_TEST(SmallFloat, RoundsIntegersOnce) {
  // Every tie between neighbouring values that is an integer, and the integers next to it.
  const auto& values = this->table.magnitudes();
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    for (const long double size : {values[i], (values[i] + values[i + 1]) / 2}) {
      if (size < 2 || std::trunc(size) != size) continue;
      for (const int distance : {-1, 0, 1}) {
        if (size < 1.8e19L) {
          const auto number =
              static_cast<std::uint64_t>(size) + static_cast<std::uint64_t>(distance);
          this->expect_nearest(number);
        }
        if (size < 9.2e18L) {
          const auto number = static_cast<std::int64_t>(size) + distance;
          this->expect_nearest(number);
          this->expect_nearest(-number);
        }
        if (size < 2.1e9L) {
          const auto number = static_cast<std::int32_t>(size) + distance;
          this->expect_nearest(number);
          this->expect_nearest(-number);
          this->expect_nearest(static_cast<std::uint32_t>(number));
        }
      }
      if (this->HasFailure()) return;
    }
  }
  for (const std::int64_t number : {std::numeric_limits<std::int64_t>::min(),
                                    std::numeric_limits<std::int64_t>::max(), std::int64_t{0}})
    this->expect_nearest(number);
  this->expect_nearest(std::numeric_limits<std::uint64_t>::max());
  std::mt19937_64 random(12);
  for (int i = 0; i < 200'000; ++i) {
    const auto bits = random() >> (random() % 64);
    this->expect_nearest(bits);
    this->expect_nearest(static_cast<std::int64_t>(bits));
    this->expect_nearest(static_cast<std::int32_t>(bits));
    this->expect_nearest(static_cast<std::int16_t>(bits));
    this->expect_nearest(static_cast<std::int8_t>(bits));
    if (this->HasFailure()) return;
  }
}

TYPED_TEST(SmallFloat, KeepsInfinitiesOrTurnsThemIntoNaN) {
  const TypeParam up(INFINITY), down(-INFINITY);
  if (std::is_same_v<TypeParam, float8_e4m3fn>) {
    EXPECT_EQ(up.bits, 0x7f);
    EXPECT_EQ(down.bits, 0xff);
  } else {
    EXPECT_EQ(static_cast<float>(up), INFINITY);
    EXPECT_EQ(static_cast<float>(down), -INFINITY);
  }
}

TYPED_TEST(SmallFloat, EveryNaNStaysOne) {
  for (const std::uint32_t bits :
       {0x7f800001u, 0x7fc00000u, 0xffffffffu, 0xff800001u, 0x7f801000u}) {
    const TypeParam element(std::bit_cast<float>(bits));
    EXPECT_TRUE(this->table.is_nan(element.bits)) << bits;
    EXPECT_EQ((element.bits & this->table.sign_bit()) != 0, bits >> 31 != 0) << bits;
  }
}

TEST(SmallFloats, HaveTheLimitsOfTheirSpecifications) {
  EXPECT_EQ(static_cast<float>(float16::from_bits(0x7bff)), 65504.0f);
  EXPECT_EQ(static_cast<float>(float16::from_bits(1)), std::ldexp(1.0f, -24));
  EXPECT_EQ(static_cast<float>(bfloat16::from_bits(0x7f7f)), 0x1.fep127f);
  EXPECT_EQ(static_cast<float>(float8_e4m3fn::from_bits(0x7e)), 448.0f);
  EXPECT_EQ(static_cast<float>(float8_e4m3fn::from_bits(1)), std::ldexp(1.0f, -9));
  EXPECT_EQ(static_cast<float>(float8_e5m2::from_bits(0x7b)), 57344.0f);
  EXPECT_EQ(static_cast<float>(float8_e5m2::from_bits(1)), std::ldexp(1.0f, -16));
  static_assert(float16(1.5f).bits == 0x3e00);
  static_assert(bfloat16(1.5f).bits == 0x3fc0);
}

}  // namespace
}  // namespace shale
