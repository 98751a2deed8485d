#include "core/utf8.hpp"

namespace shale::detail {

std::optional<utf8_character> first_character(std::string_view text) noexcept {
  if (text.empty()) return std::nullopt;
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return utf8_character{lead, 1};
  const std::size_t more = lead >= 0xc2 && lead <= 0xdf   ? 1
                           : lead >= 0xe0 && lead <= 0xef ? 2
                           : lead >= 0xf0 && lead <= 0xf4 ? 3
                                                          : 0;
  if (more == 0 || text.size() <= more) return std::nullopt;
  char32_t value = lead & (0x3fu >> more);
  for (const char next : text.substr(1, more)) {
    const auto byte = static_cast<unsigned char>(next);
    if ((byte & 0xc0) != 0x80) return std::nullopt;
    value = (value << 6) | (byte & 0x3fu);
  }
  const bool is_overlong = (more == 2 && value < 0x800) || (more == 3 && value < 0x10000);
  const bool is_surrogate = value >= 0xd800 && value <= 0xdfff;
  if (is_overlong || is_surrogate || value > 0x10ffff) return std::nullopt;
  return utf8_character{value, more + 1};
}

std::optional<std::size_t> first_wrong_byte(std::string_view text) noexcept {
  for (std::size_t offset = 0; offset < text.size();) {
    const auto character = first_character(text.substr(offset));
    if (!character) return offset;
    offset += character->bytes;
  }
  return std::nullopt;
}

}  // namespace shale::detail
