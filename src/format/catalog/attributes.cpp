#include "format/catalog/attributes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "shale/error.hpp"

namespace shale::format {
namespace {

// The first attribute whose key is not less than `key`.
template <class Attributes>
auto place_of_key(Attributes& attributes, std::string_view key) noexcept {
  return std::lower_bound(attributes.begin(), attributes.end(), key,
                          [](const auto& have, auto wanted) { return have.first < wanted; });
}

}  // namespace

const std::string* find_attribute(const array_record& record, std::string_view key) noexcept {
  const auto place = place_of_key(record.attributes, key);
  return place != record.attributes.end() && place->first == key ? &place->second : nullptr;
}

void set_attribute(array_record& record, std::string_view key, std::string_view value) {
  // This is checked first, so that an attribute of any size costs no memory.
  if (key.size() > attributes_bytes_max || value.size() > attributes_bytes_max - key.size())
    throw error(errc::invalid_argument, "an attribute is too long",
                {fmt::format("array '{}': a key of {} bytes and a value of {} bytes", record.name,
                             key.size(), value.size()),
                 fmt::format("at most {} bytes are possible: store it as an array of its own",
                             attributes_bytes_max)});
  const auto place = place_of_key(record.attributes, key);
  if (place != record.attributes.end() && place->first == key) place->second = value;
  else record.attributes.emplace(place, key, value);
}

bool remove_attribute(array_record& record, std::string_view key) {
  return std::erase_if(record.attributes,
                       [&](const auto& attribute) { return attribute.first == key; }) > 0;
}

std::optional<std::string> problem_of_attributes(const array_record& record) {
  if (record.attributes.size() > attributes_max)
    return fmt::format("it has {} attributes, at most {} are possible", record.attributes.size(),
                       attributes_max);
  std::uint64_t bytes = 0;
  for (const auto& [key, value] : record.attributes) bytes += key.size() + value.size() + 48;
  if (bytes > attributes_bytes_max)
    return fmt::format("its attributes take {} bytes, at most {} are possible", bytes,
                       attributes_bytes_max);
  return std::nullopt;
}

}  // namespace shale::format
