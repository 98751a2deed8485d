#include "core/printable.hpp"

#include "core/utf8.hpp"

namespace shale::detail {

std::string printable(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string result;
  while (!text.empty()) {
    const auto character = first_character(text);
    const std::string_view bytes = text.substr(0, character ? character->bytes : 1);
    text.remove_prefix(bytes.size());
    if (character && !is_control(character->value)) {
      result += bytes;
      continue;
    }
    for (const char unit : bytes) {
      const auto byte = static_cast<unsigned char>(unit);
      result += "\\x";
      result += digits[byte >> 4];
      result += digits[byte & 0xf];
    }
  }
  return result;
}

std::string in_quotes(std::string_view text, std::size_t bytes_shown_max) {
  if (text.size() <= bytes_shown_max) return "'" + printable(text) + "'";
  // The cut is made between two characters.
  std::size_t cut = 64;
  while (cut > 61 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;
  return "'" + printable(text.substr(0, cut)) + "...' (" + std::to_string(text.size()) + " bytes)";
}

}  // namespace shale::detail
