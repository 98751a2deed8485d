// Errors about text that a person typed: the message, then the text with a caret under the place.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "shale/error.hpp"

namespace shale::tools {

/// An `error` that already shows where in the text it happened, so that nobody adds a second caret.
class located_error : public error {
 public:
  using error::error;
};

/// `text` on one line and a caret under its byte `at` on the next, both cut to what fits a terminal
/// around the caret.
/// Shape    {text, caret}; columns count code points, so the caret lines up under UTF-8
struct caret_lines {
  std::string text;
  std::string caret;
};
caret_lines point_at(std::string_view text, std::size_t at);

/// Throws   located_error [invalid_argument]: "`subject`: `message`", the text, the caret, and
///          `advice` if there is any
[[noreturn]] void throw_at(std::string_view subject, std::string_view message,
                           std::string_view text, std::size_t at, std::string_view advice = {});

}  // namespace shale::tools
