// Errors about typed text: a message, the text, and a caret under the place of the error.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "shale/error.hpp"

namespace shale::tools {

/// An `error` that already has a caret, so that callers do not add a second one.
class located_error : public error {
 public:
  using error::error;
};

/// A line of text, and a line with a caret under one of its characters.
struct caret_lines {
  std::string text;
  std::string caret;
};

/// Points at byte `at` of `text`. Both lines are cut around the caret, so that they fit a terminal.
/// Columns count code points, so the caret is at the right place in UTF-8 text.
caret_lines point_at(std::string_view text, std::size_t at);

/// Throws   located_error [invalid_argument]: "`subject`: `message`", the text, the caret, and
///          `advice` if it is not empty
[[noreturn]] void throw_at(std::string_view subject, std::string_view message,
                           std::string_view text, std::size_t at, std::string_view advice = {});

}  // namespace shale::tools
