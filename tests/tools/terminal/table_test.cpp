#include "terminal/table.hpp"

#include <gtest/gtest.h>

namespace shale::tools {
namespace {

TEST(Table, AlignsColumnsAndTrimsLines) {
  table list({{"name"}, {"bytes", alignment::right}, {"note"}});
  list.add({"a", "1000", ""});
  list.add({"höhe", "5", "x"});
  EXPECT_EQ(list.to_string(),
            "name  bytes  note\n"
            "a      1000\n"
            "höhe      5  x\n");
}

TEST(Table, MissingCellsAreEmpty) {
  table list({{"a"}, {"b"}});
  EXPECT_TRUE(list.empty());
  list.add({"1"});
  EXPECT_FALSE(list.empty());
  EXPECT_EQ(list.to_string(), "a  b\n1\n");
}

TEST(Wrapped, BreaksAtBlanks) {
  EXPECT_EQ(wrapped("k: ", "one two three", "   ", 11), "k: one two\n   three\n");
  EXPECT_EQ(wrapped("k: ", "one two three", "   ", 10), "k: one two\n   three\n");
  EXPECT_EQ(wrapped("k: ", "one two three", "   ", 9), "k: one\n   two\n   three\n");
  EXPECT_EQ(wrapped("k: ", "höhe über", "   ", 12), "k: höhe über\n");
  EXPECT_EQ(wrapped("k: ", "/a/word/longer/than/that b", "   ", 9),
            "k: /a/word/longer/than/that\n   b\n");
  EXPECT_EQ(wrapped("k:  ", "", "", 9), "k:\n");
}

TEST(Printable, LeavesNoControlCharacterToATerminal) {
  EXPECT_EQ(printable("höhe 東 𝄞 ~"), "höhe 東 𝄞 ~");
  EXPECT_EQ(printable("a\nb\tc"), "a\\nb\\x09c");
  EXPECT_EQ(printable("\x1b[2J\x7f"), "\\x1b[2J\\x7f");
  EXPECT_EQ(printable("\u009b2J\u00a0"),
            "\\xc2\\x9b2J\u00a0");  // a C1 control character, then a printable one
  EXPECT_EQ(printable(std::string("\0\xff\xc3", 3)), "\\x00\\xff\\xc3");
  EXPECT_EQ(printable("\xc3("), "\\xc3(");
  EXPECT_EQ(printable(""), "");
}

TEST(AsUtf8, EscapesOnlyBytesThatAreNotUtf8) {
  EXPECT_EQ(as_utf8("höhe 東 𝄞 \x1b\n"), "höhe 東 𝄞 \x1b\n");
  EXPECT_EQ(as_utf8("a\xff\xc3"), "a\\xff\\xc3");
  EXPECT_EQ(as_utf8("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(as_utf8("\xe0\x80\x80"), "\\xe0\\x80\\x80");           // longer than needed
  EXPECT_EQ(as_utf8("\xf0\x8f\xbf\xbf"), "\\xf0\\x8f\\xbf\\xbf");  // longer than needed
  EXPECT_EQ(as_utf8("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond U+10FFFF
  EXPECT_EQ(as_utf8("\xed\x9f\xbf\xee\x80\x80"), "\xed\x9f\xbf\xee\x80\x80");
}

TEST(Table, ShowsNoControlCharacters) {
  table list({{"a"}});
  list.add({"x\x1by"});
  EXPECT_EQ(list.to_string(), "a\nx\\x1by\n");
  facts known;
  known.add("k\r", "v\x1b");
  EXPECT_EQ(known.to_string(), "k\\x0d  v\\x1b\n");
}

TEST(Facts, ValuesStandInOneColumn) {
  facts list;
  list.add("dtype", "float32");
  list.add("chunk shape", "128 x 64");
  EXPECT_EQ(list.to_string(),
            "dtype        float32\n"
            "chunk shape  128 x 64\n");
}

}  // namespace
}  // namespace shale::tools
