#include "notation/text_error.hpp"

#include <algorithm>

namespace shale::tools {

namespace {

// The largest number of columns of the text that an error shows. The rest of a terminal's 80
// columns is for indents and ellipses.
constexpr std::size_t columns_shown = 70;

bool continues_code_point(char byte) { return (static_cast<unsigned char>(byte) & 0xc0u) == 0x80u; }

}  // namespace

caret_lines point_at(std::string_view text, std::size_t at) {
  at = std::min(at, text.size());
  std::size_t first = 0;
  std::size_t last = text.size();
  if (text.size() > columns_shown) {
    first = at > columns_shown / 2 ? at - columns_shown / 2 : 0;
    last = std::min(text.size(), first + columns_shown);
    first = last > columns_shown ? std::min(first, last - columns_shown) : 0;
    while (first > 0 && continues_code_point(text[first])) --first;
    while (last < text.size() && continues_code_point(text[last])) ++last;
  }
  std::string shown = first > 0 ? "…" : "";
  std::string caret = first > 0 ? " " : "";
  for (std::size_t i = first; i < last; ++i) {
    const bool control = static_cast<unsigned char>(text[i]) < 0x20 || text[i] == 0x7f;
    shown += control ? ' ' : text[i];
    if (i < at && !continues_code_point(text[i])) caret += ' ';
  }
  if (last < text.size()) shown += "…";
  return {std::move(shown), std::move(caret) + '^'};
}

void throw_at(std::string_view subject, std::string_view message, std::string_view text,
              std::size_t at, std::string_view advice) {
  const caret_lines shown = point_at(text, at);
  located_error failure(errc::invalid_argument, std::string(subject).append(": ").append(message),
                        {shown.text, shown.caret});
  if (!advice.empty()) failure.add_detail(advice);
  throw failure;
}

}  // namespace shale::tools
