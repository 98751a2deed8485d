#include "notation/attribute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>

#include "notation/text_error.hpp"
#include "shale/attribute_value.hpp"
#include "shale/coordinates.hpp"
#include "shale/error.hpp"

namespace shale::tools {

namespace {

// Bounds the recursion of readers, because a file may come from an untrusted source.
constexpr int depth_max = 16;

// Whether a JSON text has an integer that does not fit in 64 bits: it would be rounded.
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

// A JSON text as a value. If the text is not JSON, is nested too deeply, or has an integer that
// would be rounded, the text itself as a string.
nlohmann::json json_of_text(std::string_view text) {
  bool too_deep = false;
  using event = nlohmann::json::parse_event_t;
  const auto limit_depth = [&](int depth, event kind, nlohmann::json&) {
    const bool opens = kind == event::object_start || kind == event::array_start;
    const bool is_deeper = depth + (opens ? 1 : 0) > depth_max;
    too_deep = too_deep || is_deeper;
    return !is_deeper;
  };
  nlohmann::json value = nlohmann::json::parse(text, limit_depth, false);
  if (value.is_discarded() || too_deep || has_large_integer(text)) return std::string(text);
  return value;
}

// ---- from typed text ----------------------------------------------------------------------------

bool fits_int64(const nlohmann::json& number) {
  if (number.is_number_unsigned())
    return number.get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX);
  return number.is_number_integer();
}

bool fits_double(const nlohmann::json& number) {
  constexpr std::int64_t exact_max = std::int64_t{1} << 53;
  if (number.is_number_float()) return true;
  return fits_int64(number) && number.get<std::int64_t>() <= exact_max &&
         number.get<std::int64_t>() >= -exact_max;
}

template <class T>
attribute_value list_of(const nlohmann::json& list) {
  std::vector<T> values;
  for (const nlohmann::json& item : list) values.push_back(item.get<T>());
  return attribute_value(values);
}

// The list as the first kind of list that can hold all its items; nothing if no kind can.
std::optional<attribute_value> list_value(const nlohmann::json& list) {
  const auto all = [&](auto&& is) { return std::all_of(list.begin(), list.end(), is); };
  if (list.empty()) return std::nullopt;
  if (all([](const nlohmann::json& item) { return item.is_boolean(); })) return list_of<bool>(list);
  if (all([](const nlohmann::json& item) { return item.is_string(); }))
    return list_of<std::string>(list);
  if (all(fits_int64)) return list_of<std::int64_t>(list);
  if (all([](const nlohmann::json& item) { return item.is_number_unsigned(); }))
    return list_of<std::uint64_t>(list);
  if (all(fits_double)) return list_of<double>(list);
  return std::nullopt;
}

// Text that begins with 0xff, as stored values with a kind do, is not UTF-8.
attribute_value text_value(const std::string& text) {
  return text.starts_with('\xff') ? attribute_value::bytes(text) : attribute_value::of_stored(text);
}

attribute_value typed_value(std::string_view key, const std::string& text) {
  const nlohmann::json value = json_of_text(text);
  if (value.is_string()) return text_value(value.get_ref<const std::string&>());
  if (key == units_key || key == coordinates_key) return attribute_value(text);
  if (value.is_boolean()) return attribute_value(value.get<bool>());
  if (value.is_number_float()) return attribute_value(value.get<double>());
  if (value.is_number())
    return fits_int64(value) ? attribute_value(value.get<std::int64_t>())
                             : attribute_value(value.get<std::uint64_t>());
  if (value.is_array())
    if (const auto list = list_value(value)) return *list;
  return attribute_value::json(text);
}

// ---- to shown text and JSON ---------------------------------------------------------------------

// JSON has neither infinities nor NaN.
nlohmann::json double_json(double number) {
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  if (std::isnan(number)) return nullptr;
  return number;
}

template <class T>
nlohmann::json list_json(const attribute_value& value) {
  nlohmann::json list = nlohmann::json::array();
  for (const T item : value.as<std::vector<T>>()) {
    if constexpr (std::is_same_v<T, double>) list.push_back(double_json(item));
    else list.push_back(item);
  }
  return list;
}

// Whether the value is a text without a kind. An older program may have stored it, which knew no
// kinds.
bool has_no_kind(const attribute_value& value, std::string_view stored) {
  return value.kind() == attribute_kind::text && value.content() == stored;
}

nlohmann::json json_of(const attribute_value& value, std::string_view stored) {
  switch (value.kind()) {
    case attribute_kind::boolean:
      return value.as<bool>();
    case attribute_kind::int64:
      return value.as<std::int64_t>();
    case attribute_kind::uint64:
      return value.as<std::uint64_t>();
    case attribute_kind::float64:
      return double_json(value.as<double>());
    case attribute_kind::boolean_list:
      return list_json<bool>(value);
    case attribute_kind::int64_list:
      return list_json<std::int64_t>(value);
    case attribute_kind::uint64_list:
      return list_json<std::uint64_t>(value);
    case attribute_kind::float64_list:
      return list_json<double>(value);
    case attribute_kind::text_list:
      return value.as<std::vector<std::string>>();
    case attribute_kind::json:
      return json_of_text(value.content());
    case attribute_kind::text:
    case attribute_kind::bytes:
      break;
  }
  return has_no_kind(value, stored) ? json_of_text(stored)
                                    : nlohmann::json(std::string(value.content()));
}

// The value that `stored` stands for; nothing if it is damaged or of a later version.
std::optional<attribute_value> readable_value(std::string_view stored) {
  try {
    return attribute_value::of_stored(stored);
  } catch (const error& failure) {
    if (failure.code() != errc::corrupt && failure.code() != errc::unsupported) throw;
    return std::nullopt;
  }
}

}  // namespace

attribute parse_attribute(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    throw_at("attribute", "expected KEY=VALUE", text, 0);
  const std::string_view key = text.substr(0, equals);
  return {std::string(key), typed_value(key, std::string(text.substr(equals + 1))).stored()};
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
  const auto value = readable_value(stored);
  return value ? json_of(*value, stored) : nlohmann::json(std::string(stored));
}

std::string attribute_text(std::string_view stored) {
  const auto value = readable_value(stored);
  if (!value || has_no_kind(*value, stored)) return std::string(stored);
  if (value->kind() == attribute_kind::json || value->kind() == attribute_kind::bytes)
    return std::string(value->content());
  const nlohmann::json json = json_of(*value, stored);
  // A text that would be read as another value needs quotes.
  if (json.is_string() && json_of_text(json.get_ref<const std::string&>()) == json)
    return json.get<std::string>();
  return json.dump();
}

std::string attribute_kind_name(std::string_view stored) {
  try {
    const attribute_value value = attribute_value::of_stored(stored);
    const bool is_json = has_no_kind(value, stored) && !json_of_text(stored).is_string();
    return std::string(is_json ? name(attribute_kind::json) : name(value.kind()));
  } catch (const error& failure) {
    if (failure.code() == errc::corrupt) return "damaged";
    if (failure.code() == errc::unsupported) return "of a later version";
    throw;
  }
}

}  // namespace shale::tools
