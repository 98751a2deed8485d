#include "core/utf8.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace shale::detail {
namespace {

// Encodes by the bit patterns of RFC 3629, section 3.
std::string encoded(char32_t value) {
  const auto next = [&](int shift) { return static_cast<char>(0x80 | ((value >> shift) & 0x3f)); };
  if (value < 0x80) return {static_cast<char>(value)};
  if (value < 0x800) return {static_cast<char>(0xc0 | (value >> 6)), next(0)};
  if (value < 0x10000) return {static_cast<char>(0xe0 | (value >> 12)), next(6), next(0)};
  return {static_cast<char>(0xf0 | (value >> 18)), next(12), next(6), next(0)};
}

TEST(Utf8, DecodesEveryCharacterAndNoSurrogate) {
  for (char32_t value = 0; value <= 0x10ffff; ++value) {
    const std::string text = encoded(value);
    const auto got = first_character(text + "x");
    if (value >= 0xd800 && value < 0xe000) {
      ASSERT_FALSE(got) << static_cast<std::uint32_t>(value);
      continue;
    }
    ASSERT_TRUE(got) << static_cast<std::uint32_t>(value);
    ASSERT_EQ(got->value, value);
    ASSERT_EQ(got->bytes, text.size());
    for (std::size_t cut = 0; cut < text.size(); ++cut)
      ASSERT_FALSE(first_character(text.substr(0, cut))) << static_cast<std::uint32_t>(value);
  }
}

// Of all sequences of up to two bytes, these begin with a character: ASCII, and the lead bytes C2
// to DF before a continuation.
TEST(Utf8, RefusesAllOtherSequences) {
  for (unsigned first = 0; first < 256; ++first)
    for (unsigned second = 0; second < 256; ++second) {
      const std::string text{static_cast<char>(first), static_cast<char>(second)};
      const bool is_pair = first >= 0xc2 && first <= 0xdf && second >= 0x80 && second <= 0xbf;
      ASSERT_EQ(first_character(text).has_value(), first < 0x80 || is_pair) << first << second;
    }
  for (const char* const text : {"\xe0\x80\x80", "\xe0\x9f\xbf", "\xf0\x80\x80\x80",
                                 "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80"})
    EXPECT_FALSE(first_character(text)) << text;
}

TEST(Utf8, FindsTheFirstWrongByteOfAText) {
  EXPECT_EQ(first_wrong_byte(""), std::nullopt);
  EXPECT_EQ(first_wrong_byte(encoded(0x10ffff) + encoded(0xe9) + "a"), std::nullopt);
  EXPECT_EQ(first_wrong_byte("\xff"), 0u);
  EXPECT_EQ(first_wrong_byte(encoded(0x20ac) + "ab\x80" + "\xff"), 5u);
  EXPECT_EQ(first_wrong_byte("ab\xe2\x82"), 2u);  // a character that is cut off
}

TEST(Utf8, KnowsControlCharacters) {
  for (char32_t value = 0; value < 0x200; ++value)
    EXPECT_EQ(is_control(value), value <= 0x1f || (value >= 0x7f && value <= 0x9f));
}

}  // namespace
}  // namespace shale::detail
