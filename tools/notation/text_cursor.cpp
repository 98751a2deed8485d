#include "notation/text_cursor.hpp"

#include <cctype>
#include <charconv>

#include "notation/text_error.hpp"

namespace shale::tools {

void text_cursor::skip_spaces() {
  while (at_ < text_.size() && text_[at_] == ' ') ++at_;
}

bool text_cursor::done() {
  skip_spaces();
  return at_ == text_.size();
}

bool text_cursor::sees(std::string_view token) {
  skip_spaces();
  return text_.substr(at_).starts_with(token);
}

bool text_cursor::take(std::string_view token) {
  if (!sees(token)) return false;
  at_ += token.size();
  return true;
}

bool text_cursor::sees_number() {
  skip_spaces();
  const std::size_t digit = at_ + (sees("-") || sees("+") ? 1 : 0);
  return digit < text_.size() && text_[digit] >= '0' && text_[digit] <= '9';
}

index_t text_cursor::take_number() {
  skip_spaces();
  const std::size_t first = at_;
  if (text_[at_] == '+') ++at_;
  index_t value = 0;
  const char* end = text_.data() + text_.size();
  const auto [rest, failure] = std::from_chars(text_.data() + at_, end, value);
  if (failure != std::errc()) fail("the number does not fit in 64 bits", first);
  at_ = static_cast<std::size_t>(rest - text_.data());
  return value;
}

std::string_view text_cursor::take_word() {
  skip_spaces();
  const std::size_t first = at_;
  while (at_ < text_.size() &&
         (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
    ++at_;
  return text_.substr(first, at_ - first);
}

std::string text_cursor::take_name() {
  std::string name;
  while (at_ < text_.size()) {
    if (text_[at_] == '[') {
      if (!text_.substr(at_).starts_with("[[")) break;
      ++at_;
    }
    name += text_[at_++];
  }
  return name;
}

void text_cursor::fail(std::string_view message, std::size_t at, std::string_view advice) const {
  throw_at(subject_, message, text_, at, advice);
}

}  // namespace shale::tools
