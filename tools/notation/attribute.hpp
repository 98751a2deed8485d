// Attributes as users type them and as commands show them. The stored bytes are JSON or plain text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shale::tools {

struct attribute {
  std::string key;
  std::string value;  ///< as stored
};

/// Parses KEY=VALUE. A VALUE that is JSON (0.5, true, [1, 2], {"a": 1}) is stored as it is typed.
/// Any other text is stored as it is. A JSON string is stored without its quotes, unless it would
/// then read as another kind of value: "1.0" keeps its quotes.
/// Throws   located_error: no '=', no key
attribute parse_attribute(std::string_view text);

/// Throws   as parse_attribute, and invalid_argument for a key that occurs twice
std::vector<attribute> parse_attributes(std::span<const std::string> texts);

/// A stored value as JSON; a string if the bytes are not JSON. An integer of more than 64 bits is a
/// string too; inside a list or an object it is rounded, as other readers of JSON do. A value
/// nested more than 16 levels deep is a string, because its indented text would be too long.
nlohmann::json attribute_json(std::string_view stored);

}  // namespace shale::tools
