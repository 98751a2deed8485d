#include "core/printable.hpp"

#include <gtest/gtest.h>

#include <string>

namespace shale::detail {
namespace {

TEST(Printable, EscapesControlCharactersAndBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("höhe/東京 \\x"), "höhe/東京 \\x");
  EXPECT_EQ(printable(std::string("a\0\x1b[2J\n\x7f", 8)), "a\\x00\\x1b[2J\\x0a\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\xc2\\x9b"
            "2J");  // U+009B begins a terminal's commands
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable(""), "");
}

TEST(InQuotes, ShowsNamesWhole) {
  EXPECT_EQ(in_quotes("dem"), "'dem'");
  EXPECT_EQ(in_quotes(""), "''");
  EXPECT_EQ(in_quotes(std::string(1024, 'n')), "'" + std::string(1024, 'n') + "'");
}

TEST(InQuotes, CutsLongerTextsBetweenCharacters) {
  EXPECT_EQ(in_quotes(std::string(1025, 'n')), "'" + std::string(64, 'n') + "...' (1025 bytes)");
  const std::string before(63, 'n');
  EXPECT_EQ(in_quotes(before + "ö" + std::string(40, 'n'), 100), "'" + before + "...' (105 bytes)");
}

}  // namespace
}  // namespace shale::detail
