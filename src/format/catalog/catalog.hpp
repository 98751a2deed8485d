// The catalog: the tree from the names of arrays to their descriptors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/catalog/array_record.hpp"
#include "format/pages/tree.hpp"
#include "shale/level_entry.hpp"

namespace shale::format {

/// The array of that name, or nothing. The generation's file ends at `end_of_file`.
/// Throws   corrupt (also if the catalog stores another array under the name), io, unsupported
std::optional<array_record> find_array(const tree& catalog, std::string_view name,
                                       std::uint64_t end_of_file);

/// Up to `limit` keys in byte order that start with `prefix` and come after `after`. In a hostile
/// file they may be any bytes; `find_array` then reports that they are no name.
/// Throws   corrupt, io
std::vector<std::string> list_arrays(const tree& catalog, std::string_view prefix,
                                     std::string_view after, std::size_t limit);

/// The same, but it checks that all keys are names of arrays.
/// Throws   corrupt (also if one of them is no name), io
std::vector<std::string> list_names(const tree& catalog, std::string_view prefix,
                                    std::string_view after, std::size_t limit);

/// Up to `limit` children of a level whose names come after `after`, in byte order: arrays whose
/// names have no further '/', and levels. A level is given with or without a '/' at its end; empty
/// is the level above all.
/// Throws   corrupt (also if a key is no name), io
/// Cost     O(children) paths of the tree: what lies below a child is skipped
std::vector<level_entry> list_children(const tree& catalog, std::string_view level,
                                       std::string_view after, std::size_t limit);

}  // namespace shale::format
