#include "notation/attribute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "notation/text_error.hpp"
#include "shale/error.hpp"

namespace shale::tools {

namespace {

// Bounds the recursion of readers, because a file may come from an untrusted source.
constexpr int depth_max = 16;

// Whether a JSON text has an integer that does not fit in 64 bits: its digits would be rounded.
bool has_large_integer(std::string_view json) {
  bool in_string = false;
  for (std::size_t at = 0; at < json.size(); ++at) {
    if (in_string && json[at] == '\\') ++at;
    else if (json[at] == '"') in_string = !in_string;
    if (in_string || at >= json.size() ||
        (json[at] != '-' && std::isdigit(static_cast<unsigned char>(json[at])) == 0))
      continue;
    const std::size_t end = std::min(json.find_first_not_of("+-.0123456789eE", at), json.size());
    const std::string_view number = json.substr(at, end - at);
    at = end - 1;
    if (number.find_first_of(".eE") != std::string_view::npos) continue;
    std::int64_t whole = 0;
    std::uint64_t natural = 0;
    const char* const past = number.data() + number.size();
    if (std::from_chars(number.data(), past, whole).ec != std::errc() &&
        std::from_chars(number.data(), past, natural).ec != std::errc())
      return true;
  }
  return false;
}

}  // namespace

attribute parse_attribute(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    throw_at("attribute", "expected KEY=VALUE", text, 0);
  attribute result{std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
  const nlohmann::json value = attribute_json(result.value);
  if (value.is_string() && value != result.value) {
    const std::string bare = value.get<std::string>();
    if (attribute_json(bare) == value) result.value = bare;
  }
  return result;
}

std::vector<attribute> parse_attributes(std::span<const std::string> texts) {
  std::vector<attribute> all;
  for (const std::string& text : texts) {
    attribute next = parse_attribute(text);
    if (std::any_of(all.begin(), all.end(),
                    [&](const attribute& known) { return known.key == next.key; }))
      throw error(errc::invalid_argument, fmt::format("attribute '{}' is named twice", next.key));
    all.push_back(std::move(next));
  }
  return all;
}

nlohmann::json attribute_json(std::string_view stored) {
  bool too_deep = false;
  using event = nlohmann::json::parse_event_t;
  const auto limit_depth = [&](int depth, event kind, nlohmann::json&) {
    const bool opens = kind == event::object_start || kind == event::array_start;
    const bool is_deeper = depth + (opens ? 1 : 0) > depth_max;
    too_deep = too_deep || is_deeper;
    return !is_deeper;
  };
  nlohmann::json value = nlohmann::json::parse(stored, limit_depth, false);
  if (value.is_discarded() || too_deep || has_large_integer(stored)) return std::string(stored);
  return value;
}

}  // namespace shale::tools
