// Attributes as they are typed and shown. What is stored is bytes: JSON, or else text.
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

/// KEY=VALUE. A VALUE that is JSON (0.5, true, [1, 2], {"a": 1}) is stored as it is typed. All else
/// is text and stored bare; so is a JSON string, unless it would then read as something else: "1.0"
/// keeps its quotes.
/// Throws   located_error: no '=', no key
attribute parse_attribute(std::string_view text);

/// Throws   the same, and invalid_argument for a key that is there twice
std::vector<attribute> parse_attributes(std::span<const std::string> texts);

/// What a stored value reads as: JSON, or else text. An integer of more than 64 bits is text; inside
/// a list or an object it is rounded, as readers of JSON do. Values nested more than 16 deep are text
/// too: printing indents them, the deeper the more.
nlohmann::json attribute_json(std::string_view stored);

}  // namespace shale::tools
