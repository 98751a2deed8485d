#include "notation/element_type.hpp"

#include <gtest/gtest.h>

#include "shale/error.hpp"

namespace shale::tools {
namespace {

TEST(ElementType, MayBeADtype) {
  for (const char* text : {"float32", "f4", "<f4"}) {
    const element_type type = parse_element_type(text);
    EXPECT_EQ(type.storage, dtype::float32) << text;
    EXPECT_EQ(type.logical, std::nullopt) << text;
    EXPECT_EQ(type.storage_shape({3, 4}), (dims{3, 4})) << text;
  }
}

TEST(ElementType, MayBeATime) {
  const logical_dtype seconds{.kind = logical_kind::datetime, .unit = time_unit::second};
  const logical_dtype steps{
      .kind = logical_kind::timedelta, .unit = time_unit::millisecond, .step = 25};
  for (const auto& [text, logical] : {std::pair("datetime64[s]", seconds),
                                      {"M8[s]", seconds},
                                      {"<M8[s]", seconds},
                                      {"timedelta64[25ms]", steps},
                                      {"m8[25ms]", steps},
                                      {"m8", {.kind = logical_kind::timedelta}}}) {
    const element_type type = parse_element_type(text);
    EXPECT_EQ(type.storage, dtype::int64) << text;
    EXPECT_EQ(type.logical, logical) << text;
    EXPECT_EQ(type.storage_shape({3, 4}), (dims{3, 4})) << text;
  }
}

TEST(ElementType, MayBeTextsOfALength) {
  for (const auto& [text, storage, kind] : {std::tuple("S10", dtype::uint8, logical_kind::bytes),
                                            {"|S10", dtype::uint8, logical_kind::bytes},
                                            {"U10", dtype::uint32, logical_kind::text}}) {
    const element_type type = parse_element_type(text);
    EXPECT_EQ(type.storage, storage) << text;
    EXPECT_EQ(type.logical, (logical_dtype{.kind = kind})) << text;
    EXPECT_EQ(type.storage_shape({3}), (dims{3, 10})) << text;
    EXPECT_EQ(type.storage_shape({}), (dims{10})) << text;
  }
  EXPECT_THROW(parse_element_type("U5").storage_shape(dims::filled(rank_max, 1)), error);
}

TEST(ElementType, RefusesWhatIsNone) {
  for (const char* text : {"", "<", "float7", "datetime64[x]", "M8[]", "M8[0s]", "S", "U", "S0",
                           "S-1", "S10 ", "U99999999999", "S4x", "<<f4"})
    EXPECT_THROW(parse_element_type(text), error) << text;
}

}  // namespace
}  // namespace shale::tools
