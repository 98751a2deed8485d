#include "shale/logical_dtype.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <limits>
#include <utility>
#include <vector>

#include "support/failures.hpp"

namespace shale {
namespace {

using test::code_of;
using test::text_of;

constexpr logical_dtype bytes_dtype{.kind = logical_kind::bytes};
constexpr logical_dtype text_dtype{.kind = logical_kind::text};

constexpr logical_dtype dates(time_unit unit, std::int32_t step = 1) {
  return {.kind = logical_kind::datetime, .unit = unit, .step = step};
}

TEST(LogicalDtype, HasTheNameThatNumPyReads) {
  const logical_dtype durations{
      .kind = logical_kind::timedelta, .unit = time_unit::microsecond, .step = 2147483647};
  const logical_dtype generic{.kind = logical_kind::timedelta};
  for (const auto& [type, text] :
       {std::pair(dates(time_unit::nanosecond), "datetime64[ns]"),
        std::pair(dates(time_unit::second, 25), "datetime64[25s]"),
        std::pair(dates(time_unit::generic), "datetime64"),
        std::pair(durations, "timedelta64[2147483647us]"), std::pair(generic, "timedelta64"),
        std::pair(bytes_dtype, "S"), std::pair(text_dtype, "U")}) {
    EXPECT_EQ(name(type), text);
    EXPECT_EQ(parse_logical_dtype(text), type) << text;
  }
  for (const char* code : {"Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"}) {
    const std::string text = std::string("timedelta64[7") + code + "]";
    const auto type = parse_logical_dtype(text);
    ASSERT_TRUE(type) << text;
    EXPECT_EQ(name(*type), text);
  }
}

TEST(LogicalDtype, OfAnyOtherNameIsNone) {
  for (const char* text : {"",
                           "s",
                           "S5",
                           "U0",
                           "V",
                           "datetime",
                           "datetime32",
                           "datetime64[",
                           "datetime64[]",
                           "datetime64[0s]",
                           "datetime64[-3s]",
                           "datetime64[2]",
                           "datetime64[generic]",
                           "datetime64[2147483648s]",
                           "datetime64[99999999999999999999s]",
                           "datetime64[ s]",
                           "datetime64[s ]",
                           "datetime64[S]",
                           "datetime64[s/2]",
                           "datetime64[25]",
                           "datetime64s",
                           "datetime64[s]]",
                           "timedelta64[us",
                           "<M8[ns]",
                           "int64"})
    EXPECT_EQ(parse_logical_dtype(text), std::nullopt) << text;
}

TEST(LogicalDtype, IsStoredAsIntegers) {
  EXPECT_EQ(storage_dtype(dates(time_unit::day)), dtype::int64);
  EXPECT_EQ(storage_dtype({.kind = logical_kind::timedelta}), dtype::int64);
  EXPECT_EQ(storage_dtype(bytes_dtype), dtype::uint8);
  EXPECT_EQ(storage_dtype(text_dtype), dtype::uint32);
  EXPECT_FALSE(has_character_axis(dates(time_unit::day)));
  EXPECT_TRUE(has_character_axis(text_dtype));
  EXPECT_EQ(logical_shape(text_dtype, {3, 5}), dims{3});
  EXPECT_EQ(logical_shape(text_dtype, {5}), dims{});
  EXPECT_EQ(logical_shape(dates(time_unit::day), {3, 5}), (dims{3, 5}));
  EXPECT_EQ(name(text_dtype, {3, 5}), "U5");
  EXPECT_EQ(name(bytes_dtype, {0}), "S0");
  EXPECT_EQ(name(dates(time_unit::day), {3}), "datetime64[D]");
}

TEST(LogicalDtype, NeedsItsStorage) {
  EXPECT_EQ(code_of([] { require_storage(text_dtype, dtype::uint32, {4}); }), errc{});
  EXPECT_EQ(code_of([] { require_storage(dates(time_unit::day), dtype::int64, {}); }), errc{});
  const auto of_floats = [] { require_storage(dates(time_unit::day), dtype::float64, {4}); };
  EXPECT_EQ(code_of(of_floats), errc::invalid_argument);
  EXPECT_NE(text_of(of_floats).find("got float64, datetime64[D] is stored as int64"),
            std::string::npos);
  EXPECT_EQ(code_of([] { require_storage(bytes_dtype, dtype::uint8, {}); }),
            errc::invalid_argument);
}

TEST(LogicalDtype, RefusesOtherValues) {
  for (const logical_dtype& wrong :
       {dates(time_unit::second, 0), dates(time_unit::second, -1), dates(time_unit::generic, 2),
        dates(static_cast<time_unit>(14)), logical_dtype{.kind = static_cast<logical_kind>(4)},
        logical_dtype{.kind = logical_kind::text, .unit = time_unit::day}}) {
    EXPECT_EQ(code_of([&] { name(wrong); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { storage_dtype(wrong); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { time_text(wrong, 1); }), errc::invalid_argument);
  }
  EXPECT_EQ(code_of([] { time_text(text_dtype, 1); }), errc::invalid_argument);
}

// The texts are those of NumPy 1.24: np.datetime_as_string.
TEST(LogicalDtype, WritesTimesAsNumPy) {
  using enum time_unit;
  struct wanted {
    logical_dtype type;
    std::int64_t count;
    const char* text;
  };
  for (const auto& [type, count, text] : {
           wanted{dates(year), -5000, "-3030"},
           wanted{dates(year), -1975, "-005"},
           wanted{dates(year), -1970, "0000"},
           wanted{dates(year), 8030, "10000"},
           wanted{dates(year, 2), 3, "1976"},
           wanted{dates(month), -1, "1969-12"},
           wanted{dates(month), -23641, "-001-12"},
           wanted{dates(month, 3), -5, "1968-10"},
           wanted{dates(week), 3, "1970-01-22"},
           wanted{dates(week), -1, "1969-12-25"},
           wanted{dates(day), 0, "1970-01-01"},
           wanted{dates(day), -1, "1969-12-31"},
           wanted{dates(day), 11016, "2000-02-29"},
           wanted{dates(day), -719529, "-001-12-31"},
           wanted{dates(day), 2932897, "10000-01-01"},
           wanted{dates(day, 7), 1, "1970-01-08"},
           wanted{dates(hour), -1, "1969-12-31T23"},
           wanted{dates(minute), -1, "1969-12-31T23:59"},
           wanted{dates(second), -1, "1969-12-31T23:59:59"},
           wanted{dates(second), std::int64_t{1} << 40, "36812-02-20T00:36:16"},
           wanted{dates(second, 25), 3, "1970-01-01T00:01:15"},
           wanted{dates(millisecond), -1, "1969-12-31T23:59:59.999"},
           wanted{dates(microsecond), 1, "1970-01-01T00:00:00.000001"},
           wanted{dates(nanosecond), -9223372036854775807, "1677-09-21T00:12:43.145224193"},
           wanted{dates(picosecond), -1, "1969-12-31T23:59:59.999999999999"},
           wanted{dates(femtosecond), -1, "1969-12-31T23:59:59.999999999999999"},
           wanted{dates(attosecond), std::int64_t{1} << 62,
                  "1970-01-01T00:00:04.611686018427387904"},
           wanted{dates(nanosecond), not_a_time, "NaT"},
       })
    EXPECT_EQ(time_text(type, count), text);
  EXPECT_EQ(time_text({.kind = logical_kind::timedelta, .unit = second, .step = 3}, -4), "-4");
  EXPECT_EQ(time_text({.kind = logical_kind::timedelta}, not_a_time), "NaT");
}

TEST(LogicalDtype, WritesTimesThatAreTooLongAsCounts) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(time_text(dates(time_unit::year), most), "9223372036854775807[Y]");
  EXPECT_EQ(time_text(dates(time_unit::week), most), "9223372036854775807[W]");
  EXPECT_EQ(time_text(dates(time_unit::day), most), "9223372036854775807[D]");
  EXPECT_EQ(time_text(dates(time_unit::second, 25), most), "9223372036854775807[25s]");
  EXPECT_EQ(time_text(dates(time_unit::generic), most), "9223372036854775807");
}

// Days one after the other, against a calendar that counts.
TEST(LogicalDtype, CountsEveryDayOfFourCenturies) {
  int year = 1800, month = 1, day = 1;
  constexpr int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  for (std::int64_t count = -62091; year < 2201; ++count) {
    char text[64];
    std::snprintf(text, sizeof text, "%04d-%02d-%02d", year, month, day);
    ASSERT_EQ(time_text(dates(time_unit::day), count), text);
    const bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (++day <= lengths[month - 1] + (is_leap && month == 2 ? 1 : 0)) continue;
    day = 1;
    if (++month <= 12) continue;
    month = 1;
    ++year;
  }
}

TEST(LogicalDtype, EndsTextsAtTheZeros) {
  using bytes = std::vector<std::uint8_t>;
  using characters = std::vector<std::uint32_t>;
  EXPECT_EQ(decoded_text(bytes{'a', 0, 'b', 0, 0}), std::string("a\0b", 3));
  EXPECT_EQ(decoded_text(bytes{0xff}), "\xff");
  EXPECT_EQ(decoded_text(bytes{}), "");
  EXPECT_EQ(decoded_text(bytes{0, 0}), "");
  EXPECT_EQ(decoded_text(characters{'A', 0xe9, 0x20ac, 0x1f600, 0}),
            "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  for (const std::uint32_t none : {0xd800u, 0xdfffu, 0x110000u, 0xffffffffu})
    EXPECT_EQ(decoded_text(characters{none, 'b'}),
              "\xef\xbf\xbd"
              "b");
  EXPECT_EQ(decoded_text(characters{0x7f, 0x7ff, 0xffff, 0x10ffff}),
            "\x7f\xdf\xbf\xef\xbf\xbf\xf4\x8f\xbf\xbf");
}

}  // namespace
}  // namespace shale
