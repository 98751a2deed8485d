#include "shale/dtype.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "shale/convert.hpp"
#include "shale/error.hpp"
#include "shale/scalar.hpp"
#include "support/failures.hpp"

namespace shale {
namespace {

using test::code_of;
using test::text_of;

const std::vector<dtype> all_dtypes = [] {
  std::vector<dtype> types;
  for (int code = 0; code < 256; ++code)
    if (const auto type = dtype_from_code(static_cast<std::uint8_t>(code))) types.push_back(*type);
  return types;
}();

TEST(Dtype, CodesAreThoseThatFilesHold) {
  ASSERT_EQ(all_dtypes.size(), 17u);
  for (std::size_t i = 0; i < all_dtypes.size(); ++i)
    EXPECT_EQ(static_cast<int>(all_dtypes[i]), static_cast<int>(i) + 1);
  EXPECT_EQ(static_cast<int>(dtype::boolean), 1);
  EXPECT_EQ(static_cast<int>(dtype::int64), 5);
  EXPECT_EQ(static_cast<int>(dtype::uint64), 9);
  EXPECT_EQ(static_cast<int>(dtype::bfloat16), 11);
  EXPECT_EQ(static_cast<int>(dtype::float64), 13);
  EXPECT_EQ(static_cast<int>(dtype::complex128), 15);
  EXPECT_EQ(static_cast<int>(dtype::float8_e5m2), 17);
}

TEST(Dtype, NamesAreTheArrayApis) {
  const char* names[] = {"bool",          "int8",       "int16",   "int32",     "int64",
                         "uint8",         "uint16",     "uint32",  "uint64",    "float16",
                         "bfloat16",      "float32",    "float64", "complex64", "complex128",
                         "float8_e4m3fn", "float8_e5m2"};
  for (std::size_t i = 0; i < all_dtypes.size(); ++i) {
    EXPECT_EQ(name(all_dtypes[i]), names[i]);
    EXPECT_EQ(parse_dtype(names[i]), all_dtypes[i]);
  }
}

TEST(Dtype, ParsesNumPysCodesInNativeByteOrder) {
  EXPECT_EQ(parse_dtype("|b1"), dtype::boolean);
  EXPECT_EQ(parse_dtype("<i8"), dtype::int64);
  EXPECT_EQ(parse_dtype("=u2"), dtype::uint16);
  EXPECT_EQ(parse_dtype("f2"), dtype::float16);
  EXPECT_EQ(parse_dtype("<c16"), dtype::complex128);
  for (const char* text :
       {"", "<", ">i8", "<<i8", "i3", "float", "Float32", "<float32", "f4 ", "c4"})
    EXPECT_EQ(parse_dtype(text), std::nullopt) << text;
}

TEST(Dtype, SizesAndKindsAreThoseOfTheirTypes) {
  for (const dtype type : all_dtypes) {
    visit(type, all_types{}, [type]<class T>(std::type_identity<T>) {
      EXPECT_EQ(item_bytes(type), sizeof(T)) << name(type);
      EXPECT_EQ(dtype_of<T>(), type);
      EXPECT_EQ(dtype_of<const T>(), type);
      const dtype_kind wanted = std::is_same_v<T, bool>  ? dtype_kind::boolean
                                : detail::is_complex<T>  ? dtype_kind::complex
                                : !std::is_integral_v<T> ? dtype_kind::floating
                                : std::is_signed_v<T>    ? dtype_kind::signed_integer
                                                         : dtype_kind::unsigned_integer;
      EXPECT_EQ(kind(type), wanted) << name(type);
      EXPECT_EQ(is_integer(type), (std::is_integral_v<T> && !std::is_same_v<T, bool>))
          << name(type);
      EXPECT_EQ(is_inexact(type), !std::is_integral_v<T>) << name(type);
      EXPECT_EQ(computes(type), sizeof(T) > 1 || std::is_integral_v<T>) << name(type);
    });
  }
  EXPECT_EQ(dtype_of<long long>(), dtype::int64);
  EXPECT_EQ(dtype_of<unsigned long>(), dtype::uint64);
}

// The promotion lattice of the array API. Pairs of different kinds, which it leaves open, are
// filled in: an integer takes the type of the float. `--` is an error.
TEST(Dtype, PromotesByTheTable) {
  const char* table =
      "     b1  i1  i2  i4  i8  u1  u2  u4  u8  f2  bf  f4  f8  c8  c16 e4  e5 \n"
      "b1   b1  i1  i2  i4  i8  u1  u2  u4  u8  f2  bf  f4  f8  c8  c16 --  -- \n"
      "i1   i1  i1  i2  i4  i8  i2  i4  i8  --  f2  bf  f4  f8  c8  c16 --  -- \n"
      "i2   i2  i2  i2  i4  i8  i2  i4  i8  --  f2  bf  f4  f8  c8  c16 --  -- \n"
      "i4   i4  i4  i4  i4  i8  i4  i4  i8  --  f2  bf  f4  f8  c8  c16 --  -- \n"
      "i8   i8  i8  i8  i8  i8  i8  i8  i8  --  f2  bf  f4  f8  c8  c16 --  -- \n"
      "u1   u1  i2  i2  i4  i8  u1  u2  u4  u8  f2  bf  f4  f8  c8  c16 --  -- \n"
      "u2   u2  i4  i4  i4  i8  u2  u2  u4  u8  f2  bf  f4  f8  c8  c16 --  -- \n"
      "u4   u4  i8  i8  i8  i8  u4  u4  u4  u8  f2  bf  f4  f8  c8  c16 --  -- \n"
      "u8   u8  --  --  --  --  u8  u8  u8  u8  f2  bf  f4  f8  c8  c16 --  -- \n"
      "f2   f2  f2  f2  f2  f2  f2  f2  f2  f2  f2  f4  f4  f8  c8  c16 --  -- \n"
      "bf   bf  bf  bf  bf  bf  bf  bf  bf  bf  f4  bf  f4  f8  c8  c16 --  -- \n"
      "f4   f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  f4  f8  c8  c16 --  -- \n"
      "f8   f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  c16 c16 --  -- \n"
      "c8   c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c8  c16 c8  c16 --  -- \n"
      "c16  c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 --  -- \n"
      "e4   --  --  --  --  --  --  --  --  --  --  --  --  --  --  --  e4  -- \n"
      "e5   --  --  --  --  --  --  --  --  --  --  --  --  --  --  --  --  e5 \n";
  const auto type_of = [](const std::string& code) {
    if (code == "bf") return dtype::bfloat16;
    if (code == "e4") return dtype::float8_e4m3fn;
    if (code == "e5") return dtype::float8_e5m2;
    return parse_dtype(code).value();
  };
  std::istringstream lines(table);
  std::string line, code;
  std::getline(lines, line);
  std::vector<dtype> columns;
  for (std::istringstream heads(line); heads >> code;) columns.push_back(type_of(code));
  ASSERT_EQ(columns.size(), 17u);
  std::size_t entries = 0;
  while (std::getline(lines, line)) {
    std::istringstream row(line);
    row >> code;
    const dtype a = type_of(code);
    for (const dtype b : columns) {
      row >> code;
      ++entries;
      SCOPED_TRACE(std::string(name(a)) + " with " + std::string(name(b)));
      if (code == "--") {
        try {
          promote(a, b);
          ADD_FAILURE() << "nothing was thrown";
        } catch (const error& failure) {
          EXPECT_EQ(failure.code(), errc::invalid_argument);
        }
      } else {
        EXPECT_EQ(promote(a, b), type_of(code));
      }
    }
  }
  EXPECT_EQ(entries, 17u * 17u);
}

TEST(Dtype, RefusedPromotionsNameTheFix) {
  try {
    promote(dtype::int64, dtype::uint64);
    FAIL();
  } catch (const error& failure) {
    EXPECT_STREQ(failure.what(),
                 "int64 and uint64 have no common dtype [invalid_argument]\n"
                 "  no integer type holds both: cast the uint64 to int64, or both to float64");
  }
}

// Values for which any loss is visible: all values of the narrow types; the extreme values and odd
// bit patterns of the wide ones.
template <class T>
std::vector<T> telling_values() {
  std::vector<T> values;
  if constexpr (sizeof(T) <= 2 && !std::is_same_v<T, bool>) {
    for (std::uint32_t bits = 0; bits < 1u << (8 * sizeof(T)); ++bits) {
      T value;
      std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));
      values.push_back(value);
    }
  } else if constexpr (detail::is_complex<T>) {
    for (const auto part : telling_values<typename T::value_type>()) {
      values.emplace_back(part, 0);
      values.emplace_back(0, part);
    }
  } else {
    using limits = std::numeric_limits<T>;
    values = {limits::lowest(), limits::max(), T{0}, T{1}};
    if constexpr (!std::is_integral_v<T>) {
      values.insert(values.end(), {limits::denorm_min(), 1 + limits::epsilon(), limits::infinity(),
                                   limits::quiet_NaN()});
    }
  }
  return values;
}

// Can hold every value of every dtype.
template <class T>
std::complex<long double> exact(T value) {
  if constexpr (detail::is_complex<T>) return {value.real(), value.imag()};
  else return static_cast<long double>(value);
}

template <class To, class From>
bool survives(From value) {
  const auto before = exact(value), after = exact(convert<To>(value));
  const auto same = [](long double a, long double b) {
    return a == b || (std::isnan(a) && std::isnan(b));
  };
  return same(before.real(), after.real()) && same(before.imag(), after.imag());
}

TEST(Dtype, ConvertsLosslesslyExactlyWhereEveryValueSurvives) {
  int lossless = 0;
  for (const dtype from : all_dtypes) {
    for (const dtype to : all_dtypes) {
      const bool wanted = visit(from, all_types{}, [to]<class From>(std::type_identity<From>) {
        return visit(to, all_types{}, []<class To>(std::type_identity<To>) {
          for (const From value : telling_values<From>())
            if (!survives<To>(value)) return false;
          return true;
        });
      });
      EXPECT_EQ(converts_losslessly(from, to), wanted) << name(from) << " to " << name(to);
      lossless += wanted;
    }
  }
  EXPECT_GT(lossless, 60);
}

TEST(Dtype, VisitReturnsValuesAndRefusesTypesOutsideTheList) {
  const auto size = [](auto tag) { return sizeof(typename decltype(tag)::type); };
  EXPECT_EQ(visit(dtype::int16, integer_types{}, size), 2u);
  try {
    visit(dtype::float8_e5m2, computing_types{}, size);
    FAIL();
  } catch (const error& failure) {
    EXPECT_STREQ(failure.what(),
                 "float8_e5m2 cannot be used here [invalid_argument]\n"
                 "  float8 types support only storage and conversion: cast to float16 or float32");
  }
  EXPECT_THROW(visit(dtype::float32, integer_types{}, [](auto) {}), error);
}

TEST(Dtype, ValuesThatAreNoneAreRefused) {
  for (const int code : {0, 18, 19, 100, 200, 255}) {
    const auto none = static_cast<dtype>(code);
    EXPECT_EQ(name(none), "no dtype");
    EXPECT_EQ(code_of([&] { static_cast<void>(item_bytes(none)); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { static_cast<void>(kind(none)); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { static_cast<void>(is_integer(none)); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { static_cast<void>(is_inexact(none)); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { static_cast<void>(computes(none)); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { promote(none, none); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { promote(none, dtype::int8); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { promote(dtype::boolean, none); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { converts_losslessly(none, none); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { converts_losslessly(dtype::int8, none); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { visit(none, all_types{}, [](auto) {}); }), errc::invalid_argument);
    EXPECT_FALSE(scalar(1).fits(none));
    EXPECT_NE(
        text_of([&] { static_cast<void>(item_bytes(none)); }).find("got " + std::to_string(code)),
        std::string::npos);
  }
}

}  // namespace
}  // namespace shale
