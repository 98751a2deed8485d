// Reads the tokens of an expression from left to right; what goes wrong points at its place.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "text_error.hpp"
#include "tokens.hpp"

namespace shale::tools {

class token_cursor {
 public:
  /// Throws   as split_tokens
  /// Lifetime refers to `text`
  explicit token_cursor(std::string_view text) : text_(text), tokens_(split_tokens(text)) {}

  /// The next token, or one after it: `ahead` must not lead beyond the last, which is `end`.
  const token& peek(std::size_t ahead = 0) const { return tokens_[next_ + ahead]; }
  const token& advance() { return tokens_[next_++]; }

  /// How many tokens have been read, and one of them.
  std::size_t position() const noexcept { return next_; }
  const token& read_at(std::size_t position) const { return tokens_[position]; }

  /// Reads `symbol` if it is next.
  bool take(std::string_view symbol);

  /// Throws   located_error unless `symbol` is next, which it then reads
  void expect(std::string_view symbol);

  /// Throws   located_error at byte `where`
  [[noreturn]] void fail(std::string_view message, std::size_t where,
                         std::string_view advice = {}) const;

  /// Throws   located_error: the next token is not what was `wanted`, with advice for what people
  ///          write who know Python
  [[noreturn]] void fail_at_token(std::string_view wanted = {}) const;

  /// Runs `body`; an error that it throws gets the caret.
  template <class Body>
  std::invoke_result_t<Body&> at(std::size_t where, Body&& body) const {
    try {
      return body();
    } catch (const located_error&) {
      throw;
    } catch (error& failure) {
      const caret_lines shown = point_at(text_, where);
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
