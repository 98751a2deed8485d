// Tokens of expressions: the tokens of Python that expressions can use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace shale::tools {

enum class token_kind : std::uint8_t { name, integer, real, string, symbol, end };

struct token {
  token_kind kind = token_kind::end;

  /// The characters of the token; of a string, without its quotes.
  std::string_view text;

  /// The byte of the text where it begins.
  std::size_t at = 0;

  /// A sign is a token of its own, so this may be one more than an int64 holds.
  std::uint64_t integer = 0;
  double real = 0;

  bool is(std::string_view symbol) const noexcept {
    return kind == token_kind::symbol && text == symbol;
  }
};

/// The largest number of bytes in an expression. Only programs write longer expressions, and they
/// can compute them in parts.
inline constexpr std::size_t expression_bytes_max = 64 * 1024;

/// Splits `text`; the last token is `end`. Numbers are Python's: 1_000, 0xff, 1., .5, 2e-3.
/// A newline is a space; '#' starts a comment to the end of its line.
/// Throws   located_error: a character without a meaning, no valid number, an integer that
///          uint64 does not hold; invalid_argument: an expression that is too long
/// Lifetime tokens point into `text`
std::vector<token> split_tokens(std::string_view text);

}  // namespace shale::tools
