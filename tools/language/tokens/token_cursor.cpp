#include "language/tokens/token_cursor.hpp"

#include <fmt/format.h>

namespace shale::tools {

bool token_cursor::take(std::string_view symbol) {
  if (!peek().is(symbol)) return false;
  ++next_;
  return true;
}

void token_cursor::expect(std::string_view symbol) {
  if (!take(symbol)) fail_at_token(fmt::format("expected '{}'", symbol));
}

void token_cursor::fail(std::string_view message, std::size_t at_byte,
                        std::string_view advice) const {
  throw_at("expression", message, text_, at_byte, advice);
}

void token_cursor::fail_at_token(std::string_view wanted) const {
  const token& found = peek();
  if (found.kind == token_kind::end)
    fail(wanted.empty() ? std::string("it ends too early")
                        : fmt::format("{}, but it ends here", wanted),
         found.at);
  if (found.text == "and" || found.text == "or" || found.text == "not")
    fail(fmt::format("'{}' does not work on arrays", found.text), found.at,
         "write & | ~ instead, with brackets around comparisons: (a > 0) & (a < 1)");
  if (found.text == "if")
    fail("'if' does not work on arrays", found.at, "write where(condition, a, b)");
  if (found.is("="))
    fail("only a name at the start can be given a value", found.at,
         "as in: slope = a / b; atan(slope). Comparisons are written ==");
  if (wanted.empty()) fail(fmt::format("unexpected '{}'", found.text), found.at);
  fail(fmt::format("{}, got '{}'", wanted, found.text), found.at);
}

}  // namespace shale::tools
