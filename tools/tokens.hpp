// The words of an expression: Python's tokens, less those that no expression of ours can use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace shale::tools {

enum class token_kind : std::uint8_t { name, integer, real, string, symbol, end };

struct token {
  token_kind kind = token_kind::end;

  /// The characters themselves; for strings without the quotes.
  std::string_view text;

  /// Where it starts, in bytes.
  std::size_t at = 0;

  std::int64_t integer = 0;
  double real = 0;

  bool is(std::string_view symbol) const noexcept {
    return kind == token_kind::symbol && text == symbol;
  }
};

/// Most bytes of an expression. Longer ones are generated, and belong into several arrays.
inline constexpr std::size_t max_expression_bytes = 64 * 1024;

/// Splits `text`; the last token is `end`. Numbers are Python's: 1_000, 0xff, 1., .5, 2e-3.
/// A newline is a space; '#' starts a comment to the end of its line.
/// Throws   located_error: a character or number that is none, an integer beyond 64 bits, an
///          expression too long
/// Lifetime tokens point into `text`
std::vector<token> split_tokens(std::string_view text);

}  // namespace shale::tools
