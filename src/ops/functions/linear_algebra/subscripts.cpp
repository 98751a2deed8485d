#include "ops/functions/linear_algebra/subscripts.hpp"

#include <algorithm>
#include <array>

#include "shale/error.hpp"

namespace shale::ops {

namespace {

constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
constexpr std::string_view ellipsis_text = "...";

class reader {
 public:
  explicit reader(std::string_view text) : read_{text, {}, std::nullopt} {}

  subscripts all() {
    read_.operands.push_back(term());
    while (next() == ',') {
      ++at_;
      read_.operands.push_back(term());
    }
    if (next() == '-' || next() == '>') {
      if (read_.text.substr(at_, 2) != "->") read_.fail("'->' is wanted", at_);
      at_ += 2;
      read_.result = term();
      check_result(*read_.result);
    }
    if (at_ < read_.text.size()) read_.fail("a letter, ',', '...' or '->' is wanted", at_);
    return std::move(read_);
  }

 private:
  // Skips spaces. Returns the next character, or 0 at the end.
  char next() {
    while (at_ < read_.text.size() && read_.text[at_] == ' ') ++at_;
    return at_ < read_.text.size() ? read_.text[at_] : '\0';
  }

  subscript_term term() {
    subscript_term made;
    next();
    made.begin = at_;
    while (const char character = next()) {
      if (character == '.') {
        if (read_.text.substr(at_, 3) != ellipsis_text)
          read_.fail("an ellipsis has three dots", at_);
        if (made.dots) read_.fail("a second ellipsis", at_);
        made.dots = made.names.size();
        at_ += ellipsis_text.size();
        continue;
      }
      const std::size_t letter = letters.find(character);
      if (letter == std::string_view::npos) break;
      if (made.names.size() == rank_max)
        read_.fail("more than " + std::to_string(rank_max) + " letters for an array", at_);
      made.names.push_back(static_cast<index_t>(letter));
      made.at.push_back(at_++);
    }
    return made;
  }

  void check_result(const subscript_term& result) const {
    for (std::size_t k = 0; k < result.at.size(); ++k) {
      const index_t name = result.names[static_cast<index_t>(k)];
      const index_t* const before = result.names.begin() + k;
      if (std::find(result.names.begin(), before, name) != before)
        read_.fail("the result has '" + name_text(name) + "' twice", result.at[k]);
      const bool is_known = std::any_of(
          read_.operands.begin(), read_.operands.end(), [&](const subscript_term& operand) {
            return std::find(operand.names.begin(), operand.names.end(), name) !=
                   operand.names.end();
          });
      if (!is_known) read_.fail("no operand has '" + name_text(name) + "'", result.at[k]);
    }
  }

  subscripts read_;
  std::size_t at_ = 0;
};

dims with_ellipsis(const subscript_term& term, index_t axes) {
  dims names;
  for (index_t k = 0; k <= term.names.size(); ++k) {
    if (term.dots == k)
      for (index_t axis = axes; axis-- > 0;) names.push_back(first_name_of_ellipsis + axis);
    if (k < term.names.size()) names.push_back(term.names[k]);
  }
  return names;
}

}  // namespace

subscripts subscripts::read(std::string_view text) { return reader(text).all(); }

void subscripts::fail(const std::string& message, std::size_t at) const {
  throw error(errc::invalid_argument, "einsum: " + message,
              {"at position " + std::to_string(at) + " of '" + std::string(text) + "'"});
}

dims subscripts::names_of_operand(std::size_t number, const dims& shape) const {
  const subscript_term& term = operands[number];
  const index_t more = shape.size() - term.names.size();
  if (more < 0 || (more > 0 && !term.dots))
    fail("operand " + std::to_string(number) + " has shape " + to_string(shape) + ", but " +
             std::to_string(term.names.size()) + " letters",
         term.begin);
  return with_ellipsis(term, more);
}

dims subscripts::names_of_result(index_t axes) const {
  if (result) {
    if (axes > 0 && !result->dots)
      fail("the result needs '...' for the axes of the operands' ellipses", result->begin);
    return with_ellipsis(*result, axes);
  }
  std::array<int, letters.size()> occurrences{};
  for (const subscript_term& term : operands)
    for (const index_t name : term.names) ++occurrences[static_cast<std::size_t>(name)];
  subscript_term implied;
  implied.dots = 0;
  for (std::size_t letter = 0; letter < letters.size(); ++letter)
    if (occurrences[letter] == 1) implied.names.push_back(static_cast<index_t>(letter));
  return with_ellipsis(implied, axes);
}

std::string name_text(index_t name) {
  if (name >= first_name_of_ellipsis) return std::string(ellipsis_text);
  return std::string(1, letters[static_cast<std::size_t>(name)]);
}

}  // namespace shale::ops
