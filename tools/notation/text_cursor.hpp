// Reads characters of a typed text from left to right; errors point at their place in it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "shale/dims.hpp"

namespace shale::tools {

class text_cursor {
 public:
  /// `subject` begins the messages of errors, as in "address: …". Reading starts at byte `at`.
  /// Lifetime refers to both texts
  text_cursor(std::string_view subject, std::string_view text, std::size_t at = 0)
      : subject_(subject), text_(text), at_(at) {}

  /// The byte that is read next.
  std::size_t at() const noexcept { return at_; }

  void skip_spaces();

  /// These four skip spaces first. `take` reads the token if it is next.
  bool done();
  bool sees(std::string_view token);
  bool take(std::string_view token);
  bool sees_number();

  /// Reads an integer with an optional sign. Requires sees_number().
  /// Throws   located_error if it does not fit in 64 bits
  index_t take_number();

  /// Reads a word of letters, digits and '_', which may be empty.
  std::string_view take_word();

  /// Reads the name of an array, which ends at a '[' that is not doubled.
  std::string take_name();

  /// Throws   located_error at byte `at`, by default the one that is read next
  [[noreturn]] void fail(std::string_view message, std::size_t at,
                         std::string_view advice = {}) const;
  [[noreturn]] void fail(std::string_view message) const { fail(message, at_); }

 private:
  std::string_view subject_;
  std::string_view text_;
  std::size_t at_;
};

}  // namespace shale::tools
