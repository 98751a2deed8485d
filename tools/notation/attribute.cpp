#include "notation/attribute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "notation/text_error.hpp"
#include "shale/error.hpp"

namespace shale::tools {

namespace {

// Bounds the recursion of readers, because a file may come from an untrusted source.
constexpr int depth_max = 16;

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
  const bool rounded =
      value.is_number_float() && stored.find_first_not_of("-0123456789 ") == std::string_view::npos;
  if (value.is_discarded() || too_deep || rounded) return std::string(stored);
  return value;
}

}  // namespace shale::tools
