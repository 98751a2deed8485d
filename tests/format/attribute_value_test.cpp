// Tests attributes with a kind: their bytes in a file, which are written here by hand, and bytes
// that no writer makes.
#include "shale/attribute_value.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "support/failures.hpp"
#include "support/little_memory.hpp"

namespace shale {
namespace {

using test::code_of;
using test::text_of;

using whole_list = std::vector<std::int64_t>;
using natural_list = std::vector<std::uint64_t>;
using real_list = std::vector<double>;
using bool_list = std::vector<bool>;
using text_list = std::vector<std::string>;

// The head of a stored value: "\xff" "SHATT", version 1, the kind.
std::string head(char kind) { return std::string("\xffSHATT\1", 7) + kind; }

// The bytes of a little-endian number.
template <class T>
std::string little(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  std::string bytes;
  for (std::size_t i = 0; i < sizeof value; ++i)
    bytes += static_cast<char>((bits >> (8 * i)) & 0xff);
  return bytes;
}

struct row {
  attribute_value value;
  std::string stored;
};

const std::vector<row>& rows() {
  static const std::vector<row> all{
      {attribute_value(true), head(1) + '\1'},
      {attribute_value(false), head(1) + std::string(1, '\0')},
      {attribute_value(-3), head(2) + little(std::int64_t{-3})},
      {attribute_value(std::uint8_t{200}), head(3) + little(std::uint64_t{200})},
      {attribute_value(UINT64_MAX), head(3) + std::string(8, '\xff')},
      {attribute_value(0.1), head(4) + little(0.1)},
      {attribute_value(0.5f), head(4) + little(0.5)},
      {attribute_value("m/s"), "m/s"},
      {attribute_value(std::string("höhe\0x", 7)), std::string("höhe\0x", 7)},
      {attribute_value(""), ""},
      {attribute_value("1.0"), head(5) + "1.0"},
      {attribute_value::json("{\"a\": [1, null]}"), head(6) + "{\"a\": [1, null]}"},
      {attribute_value::bytes("\xfe\xff"), "\xfe\xff"},
      {attribute_value::bytes("raw"), head(7) + "raw"},
      {attribute_value::bytes(head(2)), head(7) + head(2)},
      {attribute_value(bool_list{true, false}), head(17) + std::string("\1\0", 2)},
      {attribute_value(whole_list{0, -1}),
       head(18) + std::string(8, '\0') + std::string(8, '\xff')},
      {attribute_value(natural_list{7}), head(19) + little(std::uint64_t{7})},
      {attribute_value(real_list{}), head(20)},
      {attribute_value(text_list{"time", "", "y"}),
       head(21) + little(4u) + "time" + little(0u) + little(1u) + "y"},
  };
  return all;
}

template <class T>
errc refusal(const attribute_value& value) {
  return code_of([&] { static_cast<void>(value.as<T>()); });
}

template <class T>
std::string refusal_text(const attribute_value& value) {
  return text_of([&] { static_cast<void>(value.as<T>()); });
}

TEST(AttributeValue, HasTheBytesOfTheDocument) {
  for (const row& known : rows()) {
    SCOPED_TRACE(name(known.value.kind()));
    EXPECT_EQ(known.value.stored(), known.stored);
    EXPECT_EQ(attribute_value::of_stored(known.stored), known.value);
  }
  for (const row& one : rows())
    for (const row& other : rows()) EXPECT_EQ(one.value == other.value, one.stored == other.stored);
}

TEST(AttributeValue, IsReadAsItWasMade) {
  EXPECT_TRUE(attribute_value(true).as<bool>());
  EXPECT_EQ(attribute_value(INT64_MIN).as<std::int64_t>(), INT64_MIN);
  EXPECT_EQ(attribute_value(UINT64_MAX).as<std::uint64_t>(), UINT64_MAX);
  EXPECT_EQ(attribute_value(0.1).as<double>(), 0.1);
  EXPECT_TRUE(std::isnan(attribute_value(std::nan("")).as<double>()));
  EXPECT_TRUE(std::signbit(attribute_value(-0.0).as<double>()));
  EXPECT_NE(attribute_value(-0.0), attribute_value(0.0));
  EXPECT_EQ(attribute_value("höhe").as<std::string>(), "höhe");
  EXPECT_EQ(attribute_value::json("[]").content(), "[]");
  EXPECT_EQ(attribute_value::bytes("\xff").content(), "\xff");
  EXPECT_EQ(attribute_value("m").content(), "m");
  EXPECT_EQ(attribute_value(bool_list{true, false}).as<bool_list>(), (bool_list{true, false}));
  EXPECT_EQ(attribute_value(whole_list{5, INT64_MIN}).as<whole_list>(), (whole_list{5, INT64_MIN}));
  EXPECT_EQ(attribute_value(natural_list{UINT64_MAX}).as<natural_list>(),
            (natural_list{UINT64_MAX}));
  EXPECT_EQ(attribute_value(real_list{0.5, -1}).as<real_list>(), (real_list{0.5, -1}));
  EXPECT_EQ(attribute_value(text_list{"a", "", "ß"}).as<text_list>(), (text_list{"a", "", "ß"}));
}

TEST(AttributeValue, IsReadAsNumbersThatHoldItExactly) {
  EXPECT_EQ(attribute_value(7).as<std::uint64_t>(), 7u);
  EXPECT_EQ(attribute_value(7u).as<std::int64_t>(), 7);
  EXPECT_EQ(attribute_value(-7).as<double>(), -7.0);
  EXPECT_EQ(attribute_value(std::int64_t{1} << 53).as<double>(), 9007199254740992.0);
  EXPECT_EQ(attribute_value(whole_list{1, 2}).as<real_list>(), (real_list{1, 2}));
  EXPECT_EQ(refusal<std::uint64_t>(attribute_value(-1)), errc::invalid_argument);
  EXPECT_EQ(refusal<std::int64_t>(attribute_value(UINT64_MAX)), errc::invalid_argument);
  EXPECT_EQ(refusal<double>(attribute_value((std::int64_t{1} << 53) + 1)), errc::invalid_argument);
  EXPECT_EQ(refusal<double>(attribute_value(-(std::int64_t{1} << 53) - 1)), errc::invalid_argument);
  EXPECT_EQ(refusal<double>(attribute_value(UINT64_MAX)), errc::invalid_argument);
  EXPECT_EQ(refusal<std::int64_t>(attribute_value(1.0)), errc::invalid_argument);
  EXPECT_EQ(refusal<bool>(attribute_value(1)), errc::invalid_argument);
  EXPECT_EQ(refusal<std::int64_t>(attribute_value(true)), errc::invalid_argument);
  EXPECT_EQ(refusal<std::int64_t>(attribute_value("1")), errc::invalid_argument);
  EXPECT_EQ(refusal<std::int64_t>(attribute_value(whole_list{1})), errc::invalid_argument);
  EXPECT_EQ(refusal<natural_list>(attribute_value(whole_list{1, -1})), errc::invalid_argument);
  EXPECT_EQ(refusal<std::string>(attribute_value::json("1")), errc::invalid_argument);
  EXPECT_EQ(refusal<std::string>(attribute_value(text_list{"a"})), errc::invalid_argument);
  EXPECT_EQ(code_of([] { static_cast<void>(attribute_value(1).content()); }),
            errc::invalid_argument);
}

TEST(AttributeValue, SaysWhichKindWasWanted) {
  EXPECT_NE(refusal_text<std::uint64_t>(attribute_value(-1)).find("wanted uint64, got int64 -1"),
            std::string::npos);
  EXPECT_NE(refusal_text<double>(attribute_value("1")).find("wanted double, got text"),
            std::string::npos);
  EXPECT_NE(refusal_text<text_list>(attribute_value(real_list{1}))
                .find("wanted list of texts, got list of double"),
            std::string::npos);
}

// Texts that programs could take for JSON have a head, so that they stay texts.
TEST(AttributeValue, KeepsTextsApartFromJson) {
  const auto is_plain = [](const std::string& text) {
    const std::string stored = attribute_value(text).stored();
    EXPECT_EQ(attribute_value::of_stored(stored), attribute_value(text)) << text;
    return stored == text;
  };
  for (const char* text : {"", " ", "m", "m/s", "trout", "nu", "+1", ".5", "a\"b\"", "é", "NaN"})
    EXPECT_TRUE(is_plain(text)) << text;
  for (const char* text : {"1", "-1", "0.5e3", "true", " false", "\tnull", "\n\"m\"", "[1]", "{}",
                           "\xef\xbb\xbf"
                           "1",
                           "\r\n[", "-", "2 m"})
    EXPECT_FALSE(is_plain(text)) << text;
}

TEST(AttributeValue, OfBytesWithoutAKindIsATextIfTheyAreUtf8) {
  EXPECT_EQ(attribute_value::of_stored("0.5"), attribute_value("0.5"));
  EXPECT_EQ(attribute_value::of_stored("a\xff"), attribute_value::bytes("a\xff"));
  EXPECT_EQ(attribute_value::of_stored("\xffSHAT"), attribute_value::bytes("\xffSHAT"));
}

TEST(AttributeValue, ThatIsDamagedIsCorrupt) {
  const auto code = [](const std::string& stored) {
    return code_of([&] { static_cast<void>(attribute_value::of_stored(stored)); });
  };
  const std::vector<std::string> damaged{"\xffSHATT",
                                         head(1).substr(0, 7),
                                         head(1),
                                         head(1) + '\2',
                                         head(1) + "\1\1",
                                         head(2),
                                         head(2) + std::string(7, 'x'),
                                         head(3) + std::string(9, 'x'),
                                         head(4) + std::string(16, 'x'),
                                         head(5) + '\xff',
                                         head(6) + "\xc3",
                                         head(17) + "\1\3",
                                         head(18) + std::string(12, 'x'),
                                         head(21) + "abc",
                                         head(21) + little(2u) + "a",
                                         head(21) + little(UINT32_MAX) + "a",
                                         head(21) + little(1u) + "\xff"};
  for (const std::string& stored : damaged) EXPECT_EQ(code(stored), errc::corrupt) << stored;
  EXPECT_EQ(code(std::string("\xffSHATT\2\1\1", 9)), errc::unsupported);
  EXPECT_EQ(code(std::string("\xffSHATT\0\1\1", 9)), errc::unsupported);
  for (const int kind : {0, 8, 16, 22, 255})
    EXPECT_EQ(code(head(static_cast<char>(kind))), errc::unsupported) << kind;
  const auto read = [] {
    static_cast<void>(attribute_value::of_stored(head(21) + little(1u) + "a" + little(9u)));
  };
  EXPECT_NE(text_of(read).find("list of texts: it ends inside text 1"), std::string::npos);
}

// A list of 64 MiB of empty texts would take eight times as much memory.
TEST(AttributeValue, WithTooManyTextsIsRefused) {
  constexpr std::size_t most = std::size_t{1} << 19;
  const std::string list = head(21) + std::string(4 * most, '\0');
  EXPECT_EQ(attribute_value::of_stored(list).as<text_list>().size(), most);
  const std::string longer = head(21) + std::string(std::size_t{60} << 20, '\0');
  const test::little_memory limit(std::size_t{128} << 20);
  EXPECT_EQ(code_of([&] { static_cast<void>(attribute_value::of_stored(longer)); }), errc::corrupt);
  EXPECT_EQ(code_of([&] { attribute_value made(text_list(most + 1)); }), errc::invalid_argument);
}

TEST(AttributeValue, OfATextThatIsNotUtf8IsRefused) {
  const auto code = [](auto make) { return code_of(make); };
  EXPECT_EQ(code([] { attribute_value made("a\xff"); }), errc::invalid_argument);
  EXPECT_EQ(code([] { static_cast<void>(attribute_value::json("\xc3")); }), errc::invalid_argument);
  EXPECT_EQ(code([] { attribute_value made(text_list{"a", "\x80"}); }), errc::invalid_argument);
  EXPECT_NE(text_of([] { attribute_value made("ab\xff"); }).find("byte 2 of 3"), std::string::npos);
}

}  // namespace
}  // namespace shale
