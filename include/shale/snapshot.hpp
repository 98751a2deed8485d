// Snapshots: one generation of a container, for readers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shale/array.hpp"
#include "shale/attribute_value.hpp"
#include "shale/level_entry.hpp"

namespace [[gnu::visibility("default")]] shale {

/// One generation of a container. It never changes.
/// Cost     finding an array reads O(log arrays) pages of metadata, and no element
/// Throws   from every member: invalid_argument (it was moved from, or default-constructed),
///          out_of_memory, io, corrupt (damaged metadata)
/// Threads  every member may be called from any thread
/// Lifetime pins its generation, also against writers in other processes, until the last copy,
///          array and tensor from it is destroyed. Until then the file keeps the bytes of the
///          generation
class snapshot {
 public:
  /// The number of the generation. Later generations have larger numbers.
  std::uint64_t generation() const;

  /// The array of that name, or nothing.
  /// Throws   as every member; unsupported (the array is of a later version)
  std::optional<array> find(std::string_view name) const;

  /// The array of that name.
  /// Throws   as find; not_found, with names that are similar
  array at(std::string_view name) const;

  /// Up to three names that differ from `name` by few edits, the closest first. It compares the
  /// first 4,096 names of the container, and skips names of more than 64 bytes.
  std::vector<std::string> close_names(std::string_view name) const;

  /// Up to `limit` names that begin with `prefix` and come after `after`, sorted by their bytes.
  /// All are UTF-8 without control characters.
  /// Throws   as every member; corrupt also if one of them is a name that no array can have
  std::vector<std::string> names(std::string_view prefix = {}, std::string_view after = {},
                                 std::size_t limit = SIZE_MAX) const;

  /// Lists up to `limit` children of a level of names that come after `after`, sorted by the bytes
  /// of their names. A child is an array, or a level, whose name ends with '/'. `level` may be
  /// given with or without a '/' at its end; the top level is "". A level that does not exist has
  /// no children.
  ///
  ///    std::vector<level_entry> below = file.latest().children("raw/2026");
  ///
  /// Cost     O(log arrays) pages of metadata for each child, for any number of arrays below it
  /// Throws   as names; but of the names below a level it reads only the first, so it does not find
  ///          damage in later ones
  std::vector<level_entry> children(std::string_view level = {}, std::string_view after = {},
                                    std::size_t limit = SIZE_MAX) const;

  /// The attributes of a level of names. The container is the level "". These work as the members
  /// of `array` with these names.
  ///
  ///    std::optional<std::string> title = file.latest().attribute_as<std::string>("title");
  ///
  /// Throws   as every member; invalid_argument also if the attribute is of another kind
  ///          (`attribute_as`); unsupported (the attribute is of a later version)
  template <attribute_type T>
  std::optional<T> attribute_as(std::string_view key, std::string_view level = {}) const;
  std::optional<attribute_value> typed_attribute(std::string_view key,
                                                 std::string_view level = {}) const;
  std::vector<std::pair<std::string, std::string>> attributes(std::string_view level = {}) const;

  /// The levels that have attributes. The container is the level "".
  /// Cost     reads the names of all arrays
  std::vector<std::string> levels_with_attributes() const;

 private:
  friend class container;
  friend class transaction;
  struct implementation;
  implementation& state() const;
  std::shared_ptr<implementation> implementation_;
};

}  // namespace shale
