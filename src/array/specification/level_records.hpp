// Stores the attributes of levels of names, and of the container, which is the top level. The
// catalog holds them as the attributes of an array that has no elements and a reserved name. So
// older programs keep and copy them. See "Attributes of levels" in docs/container-format.md.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/catalog/array_record.hpp"
#include "shale/error.hpp"
#include "shale/level_entry.hpp"

namespace shale::arrays {

/// The name of the array that holds the attributes of a level. `level` may end with '/'. If it is
/// empty, it is the container.
std::string level_record_name(std::string_view level);

/// The level whose attributes an array of that name may hold, without a '/' at its end.
std::string_view level_of_record(std::string_view name) noexcept;

/// Whether the name is reserved. Arrays of older files may have it.
bool is_reserved_name(std::string_view name) noexcept;

/// Whether the array holds the attributes of a level, and nothing else.
bool is_level_record(const format::array_record& record) noexcept;

/// The record of a level without attributes.
format::array_record make_level_record(std::string name);

/// Whether the catalog has attributes of a level under that name. An array that is damaged, or of a
/// later version, does not count.
template <class Catalog>
bool holds_level(const Catalog& catalog, std::string_view name) {
  if (!is_reserved_name(name)) return false;
  try {
    const auto record = catalog.find(name);
    return record && is_level_record(*record);
  } catch (const error& failure) {
    if (failure.code() != errc::corrupt && failure.code() != errc::unsupported) throw;
    return false;
  }
}

/// Up to `limit` entries of what `list(after, limit)` lists in order, without those that hold the
/// attributes of levels. `name_of` is the name of an entry.
template <class Catalog, class List, class NameOf>
auto without_levels(const Catalog& catalog, std::string_view after, std::size_t limit, List&& list,
                    NameOf&& name_of) {
  decltype(list(after, limit)) kept;
  std::string last(after);
  while (kept.size() < limit) {
    const std::size_t wanted = limit - kept.size();
    auto more = list(std::string_view(last), wanted);
    const bool is_end = more.size() < wanted;
    if (!more.empty()) last = name_of(more.back());
    std::erase_if(more, [&](const auto& entry) { return holds_level(catalog, name_of(entry)); });
    if (kept.empty()) kept = std::move(more);
    else std::move(more.begin(), more.end(), std::back_inserter(kept));
    if (is_end) break;
  }
  return kept;
}

/// As list_arrays and list_children, but without the attributes of levels.
template <class Catalog>
std::vector<std::string> array_names(const Catalog& catalog, std::string_view prefix,
                                     std::string_view after, std::size_t limit) {
  return without_levels(
      catalog, after, limit,
      [&](std::string_view from, std::size_t most) { return catalog.list(prefix, from, most); },
      [](const std::string& name) -> const std::string& { return name; });
}

template <class Catalog>
std::vector<level_entry> array_children(const Catalog& catalog, std::string_view level,
                                        std::string_view after, std::size_t limit) {
  return without_levels(
      catalog, after, limit,
      [&](std::string_view from, std::size_t most) { return catalog.children(level, from, most); },
      [](const level_entry& child) -> const std::string& { return child.name; });
}

}  // namespace shale::arrays
