// Reads an attribute of an array, of a level of names or of the container.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/allocating.hpp"
#include "core/printable.hpp"
#include "format/catalog/attributes.hpp"
#include "shale/attribute_value.hpp"

namespace shale::arrays {

/// Finds the attribute with that key, and returns what `read` makes of it; nothing if there is no
/// such attribute. Errors name the attribute, and its owner as `owner` returns it.
template <class T, class Owner, class Read>
std::optional<T> read_attribute(const format::array_record& record, std::string_view key,
                                Owner&& owner, Read&& read) {
  return detail::reporting(
      [&] { return fmt::format("read attribute {} of {}", detail::in_quotes(key), owner()); },
      [&]() -> std::optional<T> {
        const std::string* const stored = format::find_attribute(record, key);
        if (stored == nullptr) return std::nullopt;
        return read(attribute_value::of_stored(*stored));
      });
}

}  // namespace shale::arrays
