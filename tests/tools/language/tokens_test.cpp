#include "language/tokens/tokens.hpp"

#include <gtest/gtest.h>

#include <string>

#include "shale/error.hpp"

namespace shale::tools {
namespace {

std::string kinds(std::string_view text) {
  std::string result;
  for (const token& item : split_tokens(text)) {
    switch (item.kind) {
      case token_kind::name:
        result += 'n';
        break;
      case token_kind::integer:
        result += 'i';
        break;
      case token_kind::real:
        result += 'r';
        break;
      case token_kind::string:
        result += 's';
        break;
      case token_kind::symbol:
        result += item.text;
        break;
      case token_kind::end:
        result += '$';
        break;
    }
  }
  return result;
}

TEST(Tokens, SplitsAsPythonDoes) {
  EXPECT_EQ(kinds("a+b"), "n+n$");
  EXPECT_EQ(kinds("a**-b//c"), "n**-n//n$");
  EXPECT_EQ(kinds("x[1:-1, ..., None]"), "n[i:-i,...,n]$");
  EXPECT_EQ(kinds("1.5e-3*.5+1.+2"), "r*r+r+i$");
  EXPECT_EQ(kinds("a<=b==c!=d>=e"), "n<=n==n!=n>=n$");
  EXPECT_EQ(kinds("a.sum(axis=0)"), "n.n(n=i)$");
  EXPECT_EQ(kinds(" \t\n"), "$");
  EXPECT_EQ(kinds("a # the rest is a comment\n+ 'f4'"), "n+s$");
  EXPECT_EQ(kinds("a # no newline"), "n$");
}

TEST(Tokens, ReadsNumbers) {
  EXPECT_EQ(split_tokens("1_000_000")[0].integer, 1'000'000);
  EXPECT_EQ(split_tokens("0xFF")[0].integer, 255);
  EXPECT_EQ(split_tokens("9223372036854775807")[0].integer, INT64_MAX);
  EXPECT_EQ(split_tokens("18446744073709551615")[0].integer, UINT64_MAX);
  EXPECT_EQ(split_tokens("0")[0].integer, 0);
  EXPECT_EQ(split_tokens("2.5")[0].real, 2.5);
  EXPECT_EQ(split_tokens("1e3")[0].real, 1000);
  EXPECT_EQ(split_tokens("1_0.5_0E+2")[0].real, 1050);
  EXPECT_EQ(split_tokens("0.5")[0].real, 0.5);
}

TEST(Tokens, RefusesWhatPythonRefuses) {
  for (const char* text :
       {"012", "1__0", "1_", "0x", "12ab", "1.2.3", "18446744073709551616",
        "x[9223372036854775809]", "1e400", "'open", "a $ b", "a ? b", "2j", "ä", "\\"})
    EXPECT_THROW(split_tokens(text), error) << text;
}

TEST(Tokens, KnowWhereTheyStand) {
  const auto tokens = split_tokens("ab + 12");
  EXPECT_EQ(tokens[0].at, 0u);
  EXPECT_EQ(tokens[1].at, 3u);
  EXPECT_EQ(tokens[2].at, 5u);
  EXPECT_EQ(tokens[3].at, 7u);
}

TEST(Tokens, BoundTheLength) {
  EXPECT_EQ(split_tokens(std::string(expression_bytes_max, ' ')).size(), 1u);
  EXPECT_THROW(split_tokens(std::string(expression_bytes_max + 1, ' ')), error);
}

}  // namespace
}  // namespace shale::tools
