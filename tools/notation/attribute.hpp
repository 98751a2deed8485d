// Attributes as users type them and as commands show them. A value that is typed as JSON gets the
// kind that can hold it; any other value is a text.
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
/// of these or of texts, if one of these kinds can hold it (`[1, 0.5]` is a list of double). Other
/// JSON becomes JSON (null, {"a": 1}, [1, "a"], []). A JSON string becomes a text without its
/// quotes. Any other VALUE is a text, or bytes if it is not UTF-8. The keys `units` and
/// `coordinates` have texts by convention, so values that are typed for them are never numbers:
/// `units=1` is the text "1".
/// Throws   located_error: no '=', no key; invalid_argument: a list of too many texts
attribute parse_attribute(std::string_view text);

/// Throws   as parse_attribute, and invalid_argument for a key that occurs twice
std::vector<attribute> parse_attributes(std::span<const std::string> texts);

/// A stored value as JSON. Bytes, infinities, and JSON that cannot be read become strings, and NaN
/// becomes null. An integer of more than 64 bits is a string; inside a list or an object it is
/// rounded, as other readers of JSON do. A value nested more than 16 levels deep is a string,
/// because its indented text would be too long. A text without a kind, as older programs store it,
/// is read as JSON. A damaged value is a string of its bytes.
nlohmann::json attribute_json(std::string_view stored);

/// A stored value as text that `parse_attribute` reads as the same value, except NaN, infinities
/// and bytes that are UTF-8. A uint64 that fits in an int64 becomes one, and an empty list JSON.
std::string attribute_text(std::string_view stored);

/// The kind of a stored value: "int64", "list of texts", …; "damaged", or "of a later version".
std::string attribute_kind_name(std::string_view stored);

}  // namespace shale::tools
