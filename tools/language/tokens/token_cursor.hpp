// Reads the tokens of an expression from left to right; errors point at their place in the text.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "language/tokens/tokens.hpp"
#include "notation/text_error.hpp"

namespace shale::tools {

class token_cursor {
 public:
  /// Throws   as split_tokens
  /// Lifetime refers to `text`
  explicit token_cursor(std::string_view text) : text_(text), tokens_(split_tokens(text)) {}

  /// The next token, or the one `ahead` tokens after it. Requires that this token exists.
  const token& peek(std::size_t ahead = 0) const { return tokens_[next_ + ahead]; }
  const token& advance() { return tokens_[next_++]; }

  /// The number of tokens that have been read, and the one at a position.
  std::size_t position() const noexcept { return next_; }
  const token& read_at(std::size_t position) const { return tokens_[position]; }

  /// Reads `symbol` if it is next.
  bool take(std::string_view symbol);

  /// Throws   located_error unless `symbol` is next, which it then reads
  void expect(std::string_view symbol);

  /// Throws   located_error at byte `at_byte`
  [[noreturn]] void fail(std::string_view message, std::size_t at_byte,
                         std::string_view advice = {}) const;

  /// Throws   located_error: the next token is not `wanted`. The advice explains operators of
  ///          Python that expressions do not have
  [[noreturn]] void fail_at_token(std::string_view wanted = {}) const;

  /// Runs `body`. An error that it throws gets the text with a caret under byte `at_byte`.
  template <class Body>
  std::invoke_result_t<Body&> at(std::size_t at_byte, Body&& body) const {
    try {
      return body();
    } catch (const located_error&) {
      throw;
    } catch (error& failure) {
      const caret_lines shown = point_at(text_, at_byte);
      failure.add_context("expression").add_detail(shown.text).add_detail(shown.caret);
      throw;
    }
  }

 private:
  std::string_view text_;
  std::vector<token> tokens_;
  std::size_t next_ = 0;
};

}  // namespace shale::tools
