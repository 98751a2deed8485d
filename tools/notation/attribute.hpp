// Attributes as users type them and as commands show them. What is typed as JSON gets the kind that
// holds it; what is typed as other text is a text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shale::tools {

struct attribute {
  std::string key;
  std::string value;  ///< as stored: see attribute_value::stored
};

/// Parses KEY=VALUE. A VALUE that is JSON becomes a bool, an int64, a uint64 or a double, or a list
/// of these or of texts, if one of them holds it (`[1, 0.5]` is a list of double), and JSON else
/// (null, {"a": 1}, [1, "a"], []). A JSON string is a text without its quotes. Anything else is a
/// text as it stands, or bytes if it is not UTF-8. The keys `units` and `coordinates` have texts by
/// convention, so what is typed for them is no number: `units=1` is the text "1".
/// Throws   located_error: no '=', no key; invalid_argument: a list of too many texts
attribute parse_attribute(std::string_view text);

/// Throws   as parse_attribute, and invalid_argument for a key that occurs twice
std::vector<attribute> parse_attributes(std::span<const std::string> texts);

/// A stored value as JSON. Bytes and JSON that cannot be read are strings, infinities too, and NaN
/// is null. An integer of more than 64 bits is a string; inside a list or an object it is rounded,
/// as other readers of JSON do. A value nested more than 16 levels deep is a string, because its
/// indented text would be too long. A text without a kind, as older programs store it, is read as
/// JSON. A damaged value is a string of its bytes.
nlohmann::json attribute_json(std::string_view stored);

/// A stored value as text that `parse_attribute` reads as the same value, except NaN, infinities
/// and bytes that are UTF-8. A uint64 that fits in an int64 becomes one, and an empty list JSON.
std::string attribute_text(std::string_view stored);

/// The kind of a stored value: "int64", "list of texts", …; "damaged", or "of a later version".
std::string attribute_kind_name(std::string_view stored);

}  // namespace shale::tools
