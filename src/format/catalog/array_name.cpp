#include "format/catalog/array_name.hpp"

#include <fmt/format.h>

#include "core/utf8.hpp"
#include "shale/error.hpp"

namespace shale::format {
namespace {

// Whether the byte is a character of its own that needs no look at the bytes after it. Lists examine
// many names, and most of them have no other characters.
constexpr bool is_plain(char byte) noexcept { return byte >= ' ' && byte < 0x7f; }

}  // namespace

std::optional<std::string> problem_of_name(std::string_view name) {
  if (name.empty() || name.size() > name_bytes_max)
    return fmt::format("a name has 1 to {} bytes, got {}", name_bytes_max, name.size());
  for (std::size_t offset = 0; offset < name.size();) {
    if (is_plain(name[offset])) {
      ++offset;
      continue;
    }
    const auto character = shale::detail::first_character(name.substr(offset));
    if (!character) return fmt::format("a name is UTF-8, byte {} is not", offset);
    if (shale::detail::is_control(character->value))
      return fmt::format("a name has no control characters, byte {} is one", offset);
    offset += character->bytes;
  }
  return std::nullopt;
}

void require_valid_name(std::string_view name) {
  if (const auto problem = problem_of_name(name))
    throw error(errc::invalid_argument, "not a name for an array", {*problem});
}

}  // namespace shale::format
