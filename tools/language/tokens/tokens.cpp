#include "language/tokens/tokens.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "notation/text_error.hpp"

namespace shale::tools {

namespace {

// Longer symbols first, so that "**" is not read as two "*".
constexpr std::array<std::string_view, 34> symbols{
    "...", "**", "//", "==", "!=", "<=", ">=", "<<", ">>", "…", "+", "-", "*", "/", "%", "@", "<",
    ">",   "&",  "|",  "^",  "~",  "(",  ")",  "[",  "]",  ",", ":", ".", "=", ";", "{", "}", "!"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

class splitter {
 public:
  explicit splitter(std::string_view text) : text_(text) {}

  std::vector<token> split() {
    std::vector<token> tokens;
    while (skip_blank()) tokens.push_back(next());
    tokens.push_back({.kind = token_kind::end, .text = {}, .at = at_});
    return tokens;
  }

 private:
  [[noreturn]] void fail(std::string_view message, std::size_t at,
                         std::string_view advice = {}) const {
    throw_at("expression", message, text_, at, advice);
  }

  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  // Moves to the next token; false at the end.
  bool skip_blank() {
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size() - 1);
      } else if (text_[at_] != ' ' && text_[at_] != '\t' && text_[at_] != '\n' &&
                 text_[at_] != '\r') {
        return true;
      }
    }
    return false;
  }

  token next() {
    if (starts_name(peek())) return take_name();
    if (is_digit(peek()) || (peek() == '.' && is_digit(peek(1)))) return take_number();
    if (peek() == '\'' || peek() == '"') return take_string();
    for (const std::string_view symbol : symbols) {
      if (!text_.substr(at_).starts_with(symbol)) continue;
      at_ += symbol.size();
      return {.kind = token_kind::symbol, .text = symbol, .at = at_ - symbol.size()};
    }
    fail("this character has no meaning here", at_);
  }

  token take_name() {
    const std::size_t first = at_;
    while (starts_name(peek()) || is_digit(peek())) ++at_;
    return {.kind = token_kind::name, .text = text_.substr(first, at_ - first), .at = first};
  }

  token take_string() {
    const std::size_t first = at_;
    const std::size_t last = text_.find(text_[first], first + 1);
    if (last == std::string_view::npos) fail("this quote is never closed", first);
    at_ = last + 1;
    return {
        .kind = token_kind::string, .text = text_.substr(first + 1, last - first - 1), .at = first};
  }

  // Appends digits to `digits`. Single underscores between digits are skipped.
  void take_digits(std::string& digits, bool hexadecimal = false) {
    const auto fits = [&](char c) {
      return is_digit(c) || (hexadecimal && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')));
    };
    while (fits(peek()) || (peek() == '_' && !digits.empty() && fits(peek(1)))) {
      if (peek() != '_') digits += peek();
      ++at_;
    }
  }

  token take_number() {
    const std::size_t first = at_;
    std::string digits;
    const auto finished = [&](token_kind kind) {
      if (peek() == 'j' || peek() == 'J')
        fail("complex literals are not supported", first,
             "bind a complex array with --let instead");
      if (starts_name(peek()) || is_digit(peek()) || peek() == '.')
        fail("this is not a number", first);
      return token{.kind = kind, .text = text_.substr(first, at_ - first), .at = first};
    };
    if (peek() == '0' && (peek(1) == 'x' || peek(1) == 'X')) {
      at_ += 2;
      take_digits(digits, true);
      return integer(finished(token_kind::integer), digits, 16);
    }
    take_digits(digits);
    bool whole = true;
    if (peek() == '.' && peek(1) != '.') {
      whole = false;
      digits += '.';
      ++at_;
      if (is_digit(peek())) take_digits(digits);
    }
    const bool sign = peek(1) == '-' || peek(1) == '+';
    if ((peek() == 'e' || peek() == 'E') && is_digit(peek(sign ? 2 : 1))) {
      whole = false;
      digits += 'e';
      if (peek(1) == '-') digits += '-';
      at_ += sign ? 2 : 1;
      take_digits(digits);
    }
    if (whole) {
      if (digits.size() > 1 && digits[0] == '0') fail("an integer does not start with 0", first);
      return integer(finished(token_kind::integer), digits, 10);
    }
    token result = finished(token_kind::real);
    const auto [rest, failure] =
        std::from_chars(digits.data(), digits.data() + digits.size(), result.real);
    if (failure == std::errc::result_out_of_range)
      fail("this number does not fit in a float64", first);
    if (failure != std::errc()) fail("this is not a number", first);
    return result;
  }

  // Inside brackets a number is an index, so the advice to write a float would be wrong.
  bool is_in_brackets(std::size_t at) const {
    const std::string_view before = text_.substr(0, at);
    return std::count(before.begin(), before.end(), '[') >
           std::count(before.begin(), before.end(), ']');
  }

  token integer(token result, const std::string& digits, int base) const {
    const auto [rest, failure] =
        std::from_chars(digits.data(), digits.data() + digits.size(), result.integer, base);
    const bool is_position = is_in_brackets(result.at);
    if (failure == std::errc::result_out_of_range ||
        (is_position && result.integer > std::uint64_t{1} << 63))
      fail("this integer does not fit in 64 bits", result.at,
           is_position ? "no axis has positions beyond 64 bits" : "write a float, as in 1e20");
    if (failure != std::errc()) fail("this is not a number", result.at);
    return result;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<token> split_tokens(std::string_view text) {
  if (text.size() > expression_bytes_max)
    throw error(errc::invalid_argument,
                fmt::format("expression: {} bytes are more than the {} allowed", text.size(),
                            expression_bytes_max),
                {"compute parts of it into arrays of their own first"});
  return splitter(text).split();
}

}  // namespace shale::tools
