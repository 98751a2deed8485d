// Decodes UTF-8, and refuses bytes that are not well formed.
// Source: the Unicode Standard, table 3-7 (well-formed byte sequences).
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace shale::detail {

struct utf8_character {
  char32_t value;
  std::size_t bytes;
};

/// Decodes the character that `text` begins with.
/// Returns  nothing if `text` is empty, or if its first bytes are no character: a wrong lead byte,
///          a missing continuation, a longer form than needed, a surrogate, or beyond U+10FFFF
std::optional<utf8_character> first_character(std::string_view text) noexcept;

/// The position of the first byte that begins no character; nothing if the text is UTF-8.
std::optional<std::size_t> first_wrong_byte(std::string_view text) noexcept;

/// True for U+0000 to U+001F, and for U+007F to U+009F.
constexpr bool is_control(char32_t value) noexcept {
  return value < 0x20 || (value >= 0x7f && value < 0xa0);
}

}  // namespace shale::detail
