#include "notation/attribute.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shale/attribute_value.hpp"
#include "shale/error.hpp"

namespace shale::tools {
namespace {

using whole_list = std::vector<std::int64_t>;
using real_list = std::vector<double>;
using text_list = std::vector<std::string>;

attribute_value typed(const std::string& value) {
  return attribute_value::of_stored(parse_attribute("key=" + value).value);
}

TEST(Attribute, HasTheKindThatHoldsWhatIsTyped) {
  EXPECT_EQ(typed("3"), attribute_value(3));
  EXPECT_EQ(typed("-9223372036854775808"), attribute_value(INT64_MIN));
  EXPECT_EQ(typed("9223372036854775807"), attribute_value(INT64_MAX));
  EXPECT_EQ(typed("18446744073709551615"), attribute_value(UINT64_MAX));
  EXPECT_EQ(typed("-0.5"), attribute_value(-0.5));
  EXPECT_EQ(typed("1e3"), attribute_value(1000.0));
  EXPECT_EQ(typed("true"), attribute_value(true));
  EXPECT_EQ(typed("[1,  2]"), attribute_value(whole_list{1, 2}));
  EXPECT_EQ(typed("[18446744073709551615, 0]"),
            attribute_value(std::vector<std::uint64_t>{UINT64_MAX, 0}));
  EXPECT_EQ(typed("[1, 0.5]"), attribute_value(real_list{1, 0.5}));
  EXPECT_EQ(typed("[true, false]"), attribute_value(std::vector<bool>{true, false}));
  EXPECT_EQ(typed("[\"time\", \"\"]"), attribute_value(text_list{"time", ""}));
  for (const char* json : {"null", "{\"a\": 1}", "[]", "[1, \"a\"]", "[[1]]", "[null]",
                           "[-1, 18446744073709551615]", "[9007199254740993, 0.5]"})
    EXPECT_EQ(typed(json), attribute_value::json(json)) << json;
}

TEST(Attribute, IsATextElse) {
  EXPECT_EQ(parse_attribute("unit=m/s").value, "m/s");
  EXPECT_EQ(parse_attribute("unit=\"m/s\"").value, "m/s");
  EXPECT_EQ(parse_attribute("a=b=c").key, "a");
  EXPECT_EQ(parse_attribute("a=b=c").value, "b=c");
  EXPECT_EQ(parse_attribute("a=").value, "");
  EXPECT_EQ(parse_attribute("a=\xff\xfe").value, "\xff\xfe");
  EXPECT_EQ(typed("\xffSHATT\x01\x02"), attribute_value::bytes("\xffSHATT\x01\x02"));
  EXPECT_EQ(attribute_json("\xff\xfe"), "\xff\xfe");
  EXPECT_EQ(typed("\"1.0\""), attribute_value("1.0"));
  EXPECT_EQ(typed("\"\\\"a\\\"\""), attribute_value("\"a\""));
  EXPECT_EQ(typed("[1,"), attribute_value("[1,"));
}

TEST(Attribute, IsATextByConventionWhateverIsTyped) {
  for (const std::string key : {"units", "coordinates"}) {
    for (const char* text : {"1", "0.01", "true", "[1, 2]", "lat lon", "m s-1", ""}) {
      const std::string stored = parse_attribute(key + "=" + text).value;
      EXPECT_EQ(attribute_value::of_stored(stored), attribute_value(text)) << key << text;
      EXPECT_EQ(parse_attribute(key + "=" + attribute_text(stored)).value, stored) << key << text;
    }
    EXPECT_EQ(parse_attribute(key + "=\"1\"").value, attribute_value("1").stored());
  }
  EXPECT_EQ(typed("1"), attribute_value(std::int64_t{1}));
}

TEST(Attribute, IsShownAsItIsTyped) {
  for (const char* value : {"3", "-0.5", "true", "null", "[1,2]", "{\"a\": 1}", "[]", "m/s", "",
                            "\"1.0\"", "\"true\"", "\"[1]\"", "18446744073709551615", "\xff\xfe",
                            "[\"time\",\"y\"]", "12345678901234567890123"}) {
    const std::string stored = parse_attribute(std::string("key=") + value).value;
    EXPECT_EQ(attribute_text(stored), value);
    EXPECT_EQ(parse_attribute("key=" + attribute_text(stored)).value, stored) << value;
  }
}

TEST(Attribute, IsJsonOfItsKind) {
  EXPECT_EQ(attribute_json(attribute_value("1.0").stored()), "1.0");
  EXPECT_EQ(attribute_json(attribute_value(1.0).stored()).dump(), "1.0");
  EXPECT_EQ(attribute_json(attribute_value(std::vector<bool>{true}).stored()).dump(), "[true]");
  EXPECT_EQ(attribute_json(attribute_value(text_list{"a"}).stored()).dump(), "[\"a\"]");
  EXPECT_EQ(attribute_json(attribute_value::json("{\"a\": [1]}").stored())["a"][0], 1);
  EXPECT_EQ(attribute_json(attribute_value::json("{").stored()), "{");
  EXPECT_TRUE(attribute_json(attribute_value(std::nan("")).stored()).is_null());
  EXPECT_EQ(attribute_json(attribute_value(real_list{INFINITY, -INFINITY}).stored()).dump(),
            "[\"Infinity\",\"-Infinity\"]");
}

// Older programs stored what was typed.
TEST(Attribute, WithoutAKindIsReadAsJson) {
  EXPECT_EQ(attribute_json("3"), 3);
  EXPECT_EQ(attribute_json("[1,  2]").dump(), "[1,2]");
  EXPECT_EQ(attribute_json("\"1.0\""), "1.0");
  EXPECT_EQ(attribute_json("m/s"), "m/s");
  EXPECT_EQ(attribute_text("[1,  2]"), "[1,  2]");
  EXPECT_EQ(attribute_kind_name("3"), "JSON");
  EXPECT_EQ(attribute_kind_name("m/s"), "text");
}

TEST(Attribute, HasAKindThatIsNamed) {
  const auto kind = [](const std::string& typed_text) {
    return attribute_kind_name(parse_attribute("key=" + typed_text).value);
  };
  EXPECT_EQ(kind("3"), "int64");
  EXPECT_EQ(kind("[\"a\"]"), "list of texts");
  EXPECT_EQ(kind("\"3\""), "text");
  EXPECT_EQ(kind("null"), "JSON");
  EXPECT_EQ(kind("\xff"), "bytes");
  EXPECT_EQ(attribute_kind_name("\xffSHATT\x01\x02"), "damaged");
  EXPECT_EQ(attribute_kind_name("\xffSHATT\x02\x02"), "of a later version");
  EXPECT_EQ(attribute_json("\xffSHATT\x01\x02"), "\xffSHATT\x01\x02");
}

TEST(Attribute, IsTextWhereDigitsOfIntegersWouldBeLost) {
  for (const char* value : {"12345678901234567890123", "[1, -12345678901234567890123]",
                            "{\"a\\\"b\": {\"c\": 18446744073709551616}}"}) {
    EXPECT_EQ(attribute_json(value), value);
    EXPECT_EQ(typed(value), attribute_value(value));
  }
  for (const char* value : {"[18446744073709551615, -9223372036854775808]", "[1.5e300, 1E5, -0.0]",
                            "[\"12345678901234567890123\"]", "{\"\\\"99999999999999999999\": 1}"})
    EXPECT_FALSE(attribute_json(value).is_string()) << value;
}

TEST(Attribute, NeedsAKeyAndAValue) {
  for (const char* text : {"", "unit", "=m"}) EXPECT_THROW(parse_attribute(text), error) << text;
}

}  // namespace
}  // namespace shale::tools
