#include "notation/index_text.hpp"

#include <fmt/format.h>

#include <optional>

namespace shale::tools {

namespace {

std::optional<index_t> take_bound(text_cursor& text) {
  if (text.sees_number()) return text.take_number();
  return std::nullopt;
}

index_entry take_entry(text_cursor& text, std::string_view advice) {
  if (text.take("...") || text.take("…")) return ellipsis;
  text.skip_spaces();
  const std::size_t first = text.at();
  if (text.sees("N") || text.sees("n")) {
    const std::string_view word = text.take_word();
    if (word == "None" || word == "newaxis") return newaxis;
    text.fail(fmt::format("'{}' is not an index", word), first, advice);
  }
  slice range;
  range.start = take_bound(text);
  if (!text.take(":")) {
    if (!range.start) text.fail("expected an index, a slice, '...' or None", text.at(), advice);
    return *range.start;
  }
  range.stop = take_bound(text);
  if (text.take(":")) {
    text.skip_spaces();
    const std::size_t step_at = text.at();
    range.step = take_bound(text).value_or(1);
    if (range.step == 0) text.fail("a slice's step cannot be 0", step_at);
  }
  return range;
}

}  // namespace

std::vector<index_entry> take_index(text_cursor& text, std::string_view advice) {
  std::vector<index_entry> entries;
  bool has_ellipsis = false;
  do {
    if (text.sees("]") && !entries.empty()) break;  // a trailing comma, as in Python
    text.skip_spaces();
    const std::size_t first = text.at();
    entries.push_back(take_entry(text, advice));
    if (entries.back().kind() == index_entry_kind::ellipsis) {
      if (has_ellipsis) text.fail("only one '...' can be resolved", first);
      has_ellipsis = true;
    }
    if (entries.size() > 2 * static_cast<std::size_t>(rank_max))
      text.fail(fmt::format("more than {} entries", 2 * rank_max), first);
  } while (text.take(","));
  if (!text.take("]")) text.fail("expected ',' or ']'");
  return entries;
}

}  // namespace shale::tools
