#include "shale/scalar.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "shale/error.hpp"
#include "support/comma_locale.hpp"

namespace shale {
namespace {

constexpr std::int64_t top = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t bottom = std::numeric_limits<std::int64_t>::min();
constexpr std::uint64_t highest = std::numeric_limits<std::uint64_t>::max();
const double inf = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();
using complex = std::complex<double>;

TEST(Scalar, RemembersTheDtypeOfWhatItWasMadeFrom) {
  EXPECT_EQ(scalar().dtype(), dtype::boolean);
  EXPECT_EQ(scalar(true).dtype(), dtype::boolean);
  EXPECT_EQ(scalar('a').dtype(), dtype::int8);
  EXPECT_EQ(scalar(1).dtype(), dtype::int32);
  EXPECT_EQ(scalar(1L).dtype(), dtype::int64);
  EXPECT_EQ(scalar(1LL).dtype(), dtype::int64);
  EXPECT_EQ(scalar(1ULL).dtype(), dtype::uint64);
  EXPECT_EQ(scalar(1.0f).dtype(), dtype::float32);
  EXPECT_EQ(scalar(1.0).dtype(), dtype::float64);
  EXPECT_EQ(scalar(1.0L).dtype(), dtype::float64);
  EXPECT_EQ(scalar(float16(1.0f)).dtype(), dtype::float16);
  EXPECT_EQ(scalar(bfloat16(1.0f)).dtype(), dtype::bfloat16);
  EXPECT_EQ(scalar(float8_e4m3fn(1.0f)).dtype(), dtype::float8_e4m3fn);
  EXPECT_EQ(scalar(float8_e5m2(1.0f)).dtype(), dtype::float8_e5m2);
  EXPECT_EQ(scalar(std::complex<float>(1)).dtype(), dtype::complex64);
  EXPECT_EQ(scalar(complex(1)).dtype(), dtype::complex128);
}

TEST(Scalar, PrintsAsPythonDoes) {
  EXPECT_EQ(scalar(true).to_string(), "True");
  EXPECT_EQ(scalar(false).to_string(), "False");
  EXPECT_EQ(scalar(bottom).to_string(), "-9223372036854775808");
  EXPECT_EQ(scalar(highest).to_string(), "18446744073709551615");
  EXPECT_EQ(scalar(2.5).to_string(), "2.5");
  EXPECT_EQ(scalar(3.0).to_string(), "3.0");
  EXPECT_EQ(scalar(-0.0).to_string(), "-0.0");
  EXPECT_EQ(scalar(0.1).to_string(), "0.1");
  EXPECT_EQ(scalar(0.1f).to_string(), "0.1");
  EXPECT_EQ(scalar(float16(0.1f)).to_string(), "0.1");
  EXPECT_EQ(scalar(bfloat16(3.14f)).to_string(), "3.14");
  EXPECT_EQ(scalar(float8_e5m2(57344.0f)).to_string(), "60000.0");
  EXPECT_EQ(scalar(float8_e4m3fn(448.0f)).to_string(), "450.0");
  EXPECT_EQ(scalar(float16(65504.0f)).to_string(), "65500.0");
  EXPECT_EQ(scalar(1e15).to_string(), "1000000000000000.0");
  EXPECT_EQ(scalar(1e16).to_string(), "1e+16");
  EXPECT_EQ(scalar(1e-4).to_string(), "0.0001");
  EXPECT_EQ(scalar(1e-5).to_string(), "1e-05");
  EXPECT_EQ(scalar(nan).to_string(), "nan");
  EXPECT_EQ(scalar(-inf).to_string(), "-inf");
  EXPECT_EQ(scalar(float16(INFINITY)).to_string(), "inf");
  EXPECT_EQ(scalar(complex(1, 2)).to_string(), "(1+2j)");
  EXPECT_EQ(scalar(complex(0, 2.5)).to_string(), "2.5j");
  EXPECT_EQ(scalar(complex(-0.0, -2)).to_string(), "(-0-2j)");
  EXPECT_EQ(scalar(complex(nan, -inf)).to_string(), "(nan-infj)");
  EXPECT_EQ(scalar(std::complex<float>(0.1f, 0.2f)).to_string(), "(0.1+0.2j)");
}

TEST(Scalar, IntegersFitWhereTheirValueIsInRange) {
  EXPECT_TRUE(scalar(127).fits(dtype::int8));
  EXPECT_FALSE(scalar(128).fits(dtype::int8));
  EXPECT_TRUE(scalar(-128).fits(dtype::int8));
  EXPECT_FALSE(scalar(-129).fits(dtype::int8));
  EXPECT_FALSE(scalar(-1).fits(dtype::uint64));
  EXPECT_FALSE(scalar(highest).fits(dtype::int64));
  EXPECT_TRUE(scalar(highest).fits(dtype::uint64));
  EXPECT_TRUE(scalar(top).fits(dtype::float32));  // rounding is allowed
  EXPECT_TRUE(scalar(65519).fits(dtype::float16));
  EXPECT_FALSE(scalar(65520).fits(dtype::float16));
  EXPECT_FALSE(scalar(500).fits(dtype::float8_e4m3fn));
  EXPECT_TRUE(scalar(1).fits(dtype::boolean));
  EXPECT_FALSE(scalar(2).fits(dtype::boolean));
  EXPECT_TRUE(scalar(true).fits(dtype::float8_e4m3fn));
  EXPECT_TRUE(scalar(highest).fits(dtype::complex64));
}

TEST(Scalar, FloatsFitIntegersWhereTheyAreWholeAndInRange) {
  EXPECT_TRUE(scalar(3.0).fits(dtype::int8));
  EXPECT_FALSE(scalar(3.5).fits(dtype::int64));
  EXPECT_FALSE(scalar(nan).fits(dtype::int64));
  EXPECT_FALSE(scalar(inf).fits(dtype::uint64));
  const double two_63 = 9223372036854775808.0;
  EXPECT_FALSE(scalar(two_63).fits(dtype::int64));
  EXPECT_TRUE(scalar(-two_63).fits(dtype::int64));
  EXPECT_FALSE(scalar(std::nextafter(-two_63, -inf)).fits(dtype::int64));
  EXPECT_TRUE(scalar(std::nextafter(two_63, 0)).fits(dtype::int64));
  EXPECT_TRUE(scalar(two_63).fits(dtype::uint64));
  EXPECT_FALSE(scalar(2 * two_63).fits(dtype::uint64));
  EXPECT_TRUE(scalar(-0.0).fits(dtype::uint8));
  EXPECT_FALSE(scalar(0.5).fits(dtype::boolean));
}

TEST(Scalar, FloatsFitNarrowerFloatsUnlessTheyOverflow) {
  EXPECT_TRUE(scalar(0.1).fits(dtype::float8_e5m2));
  EXPECT_FALSE(scalar(1e300).fits(dtype::float32));
  EXPECT_TRUE(scalar(1e-300).fits(dtype::float32));  // rounds to zero
  EXPECT_TRUE(scalar(inf).fits(dtype::float16));
  EXPECT_TRUE(scalar(nan).fits(dtype::float16));
  EXPECT_TRUE(scalar(nan).fits(dtype::float8_e4m3fn));
  EXPECT_FALSE(scalar(inf).fits(dtype::float8_e4m3fn));
  EXPECT_TRUE(scalar(464.0).fits(dtype::float8_e4m3fn));
  EXPECT_FALSE(scalar(465.0).fits(dtype::float8_e4m3fn));
}

TEST(Scalar, ComplexFitsRealTypesWithoutAnImaginaryPart) {
  EXPECT_TRUE(scalar(complex(3, 0)).fits(dtype::int8));
  EXPECT_FALSE(scalar(complex(3, 1)).fits(dtype::float64));
  EXPECT_FALSE(scalar(complex(3, nan)).fits(dtype::float64));
  EXPECT_TRUE(scalar(complex(3, nan)).fits(dtype::complex64));
  EXPECT_FALSE(scalar(complex(3, 1e300)).fits(dtype::complex64));
}

TEST(Scalar, ConvertsCheckedAndUnchecked) {
  EXPECT_EQ(scalar(3.0).to<std::int8_t>(), 3);
  EXPECT_EQ(scalar(300).as<std::uint8_t>(), 44);
  EXPECT_EQ(scalar(300.0).as<std::uint8_t>(), 255);
  EXPECT_EQ(scalar(2).to<complex>(), complex(2));
  try {
    scalar(2.5).to<std::int32_t>();
    FAIL();
  } catch (const error& failure) {
    EXPECT_STREQ(
        failure.what(),
        "2.5 does not fit int32 [invalid_argument]\n"
        "  wanted a value that int32 can represent up to rounding; cast explicitly to round, "
        "saturate or wrap");
  }
}

TEST(Scalar, PrintsPointsWhereTheLocaleHasCommas) {
  const auto print_all = [] {
    std::string text;
    for (int bits = 0; bits < 0x10000; bits += 7) {
      const auto half = static_cast<std::uint16_t>(bits);
      text += scalar(std::bit_cast<float16>(half)).to_string() + ' ' +
              scalar(std::bit_cast<bfloat16>(half)).to_string() + '\n';
    }
    for (int bits = 0; bits < 0x100; ++bits) {
      const auto quarter = static_cast<std::uint8_t>(bits);
      text += scalar(std::bit_cast<float8_e4m3fn>(quarter)).to_string() + ' ' +
              scalar(std::bit_cast<float8_e5m2>(quarter)).to_string() + '\n';
    }
    return text + scalar(1.5f).to_string() + scalar(complex(0.5, 2.5)).to_string() +
           scalar(1234567).to_string();
  };
  const std::string wanted = print_all();
  const test::comma_locale commas;
  ASSERT_EQ(std::strtod("1,5", nullptr), 1.5);
  EXPECT_EQ(print_all(), wanted);
}

TEST(Scalar, EqualsAsNumbersForAllTypes) {
  EXPECT_EQ(scalar(1), scalar(true));
  EXPECT_EQ(scalar(1), scalar(1.0));
  EXPECT_EQ(scalar(1u), scalar(complex(1)));
  EXPECT_EQ(scalar(0.0), scalar(-0.0));
  EXPECT_EQ(scalar(float16(2.0f)), scalar(2ULL));
  EXPECT_FALSE(scalar(-1) == scalar(highest));
  EXPECT_FALSE(scalar(nan) == scalar(nan));
  EXPECT_FALSE(scalar(complex(1, 1)) == scalar(1));
  EXPECT_EQ(scalar(complex(1, 2)), scalar(std::complex<float>(1, 2)));
  EXPECT_FALSE(scalar(complex(1, 2)) == scalar(complex(1, -2)));
  // 2^63 - 1 rounds to the double 2^63, but the two are not equal.
  EXPECT_FALSE(scalar(top) == scalar(static_cast<double>(top)));
  EXPECT_FALSE(scalar(highest) == scalar(static_cast<double>(highest)));
  EXPECT_EQ(scalar(top - 1023), scalar(static_cast<double>(top - 1023)));
}

}  // namespace
}  // namespace shale
