// Attributes as they are typed and shown. What is stored is bytes: JSON, or else text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

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

/// What a stored value reads as: JSON, or else text. So that nothing is lost or grows without bound,
/// integers of more than 64 bits and values nested more than 64 deep are text.
nlohmann::json attribute_json(std::string_view stored);

}  // namespace shale::tools
