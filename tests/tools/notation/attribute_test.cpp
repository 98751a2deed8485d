#include "notation/attribute.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "shale/error.hpp"

namespace shale::tools {
namespace {

TEST(Attribute, IsStoredAsTypedIfItIsJson) {
  for (const char* value : {"3", "-0.5", "1e3", "true", "null", "[1,  2]", "{\"a\": 1}", "[]"}) {
    EXPECT_EQ(parse_attribute(std::string("key=") + value).value, value);
    EXPECT_FALSE(attribute_json(value).is_string()) << value;
  }
}

TEST(Attribute, IsBareTextElse) {
  EXPECT_EQ(parse_attribute("unit=m/s").value, "m/s");
  EXPECT_EQ(parse_attribute("unit=\"m/s\"").value, "m/s");
  EXPECT_EQ(parse_attribute("a=b=c").key, "a");
  EXPECT_EQ(parse_attribute("a=b=c").value, "b=c");
  EXPECT_EQ(parse_attribute("a=").value, "");
  EXPECT_EQ(parse_attribute("a=\xff\xfe").value, "\xff\xfe");
  EXPECT_EQ(attribute_json("\xff\xfe"), "\xff\xfe");
}

TEST(Attribute, KeepsQuotesThatTextNeeds) {
  for (const char* value : {"\"1.0\"", "\"true\"", "\"[1]\"", "\"\\\"a\\\"\""}) {
    EXPECT_EQ(parse_attribute(std::string("key=") + value).value, value);
    EXPECT_TRUE(attribute_json(value).is_string()) << value;
  }
}

TEST(Attribute, IsTextWhereDigitsOfIntegersWouldBeLost) {
  for (const char* value : {"12345678901234567890123", "[1, -12345678901234567890123]",
                            "{\"a\\\"b\": {\"c\": 18446744073709551616}}"})
    EXPECT_EQ(attribute_json(value), value);
  for (const char* value : {"[18446744073709551615, -9223372036854775808]", "[1.5e300, 1E5, -0.0]",
                            "[\"12345678901234567890123\"]", "{\"\\\"99999999999999999999\": 1}"})
    EXPECT_FALSE(attribute_json(value).is_string()) << value;
}

TEST(Attribute, NeedsAKeyAndAValue) {
  for (const char* text : {"", "unit", "=m"}) EXPECT_THROW(parse_attribute(text), error) << text;
}

}  // namespace
}  // namespace shale::tools
