#include "notation/element_type.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string>

#include "notation/shape_text.hpp"
#include "shale/error.hpp"

namespace shale::tools {

namespace {

constexpr index_t characters_max = index_t{1} << 30;

// "datetime64[s]" for "M8[s]", and "timedelta64[s]" for "m8[s]".
std::string without_code(std::string_view text) {
  if (text.starts_with("M8")) return "datetime64" + std::string(text.substr(2));
  if (text.starts_with("m8")) return "timedelta64" + std::string(text.substr(2));
  return std::string(text);
}

std::optional<element_type> parse_time(std::string_view text) {
  const auto logical = parse_logical_dtype(without_code(text));
  if (!logical || has_character_axis(*logical)) return std::nullopt;
  return element_type{.storage = storage_dtype(*logical), .logical = logical};
}

// "S10" or "U5".
std::optional<element_type> parse_texts(std::string_view text) {
  const auto logical = parse_logical_dtype(text.substr(0, 1));
  if (!logical) return std::nullopt;
  const std::string_view length = text.substr(1);
  index_t characters = 0;
  const char* const end = length.data() + length.size();
  const auto [rest, failure] = std::from_chars(length.data(), end, characters);
  if (failure != std::errc() || rest != end || characters < 1 || characters > characters_max)
    throw error(errc::invalid_argument,
                fmt::format("'{}' is no type of texts with a number of characters", text),
                {fmt::format("wanted 1 to {} behind the letter, as in {}10", characters_max,
                             text.substr(0, 1))});
  return element_type{
      .storage = storage_dtype(*logical), .logical = logical, .characters = characters};
}

}  // namespace

dims element_type::storage_shape(const dims& shape) const {
  if (!logical || !has_character_axis(*logical)) return shape;
  dims made = shape;
  made.push_back(characters);
  return made;
}

element_type parse_element_type(std::string_view text) {
  std::string_view type = text;
  if (!type.empty() && std::string_view("<=|").find(type.front()) != std::string_view::npos)
    type.remove_prefix(1);
  if (const auto time = parse_time(type)) return *time;
  if (const auto texts = parse_texts(type)) return *texts;
  return {.storage = parse_dtype_option(text)};
}

}  // namespace shale::tools
