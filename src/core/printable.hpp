// Makes text that came from outside fit for messages.
#pragma once

#include <string>
#include <string_view>

namespace shale::detail {

/// The text with each control character, and each byte that is not UTF-8, as \xNN: a message cannot
/// change the terminal that shows it.
std::string printable(std::string_view text);

/// The printable text between single quotes. A text longer than `bytes_shown_max` is shown as its
/// first 64 bytes and its length.
std::string in_quotes(std::string_view text, std::size_t bytes_shown_max = 1024);

}  // namespace shale::detail
