// Checks the names of new arrays. HDF5 and Zarr must be able to take them too, so '/' separates
// levels, every level has a name, and no array has the name of a level.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace shale::arrays {

/// Checks the name of an array that is created or renamed. Arrays in files may have other names;
/// they stay readable.
/// Throws   invalid_argument naming the part and the reason: the format does not allow the name
///          (empty, too long, not UTF-8, control characters), a level has no name ("/a", "a/",
///          "a//b"), a level consists of periods only (".."), or the last one is reserved
void require_new_name(std::string_view name);

/// The same for a name that may be one of those that are reserved for attributes of levels.
void require_new_path(std::string_view name);

/// The first names, up to a limit, that begin with a prefix, in byte order.
using name_list =
    std::function<std::vector<std::string>(std::string_view prefix, std::size_t limit)>;

/// Checks that an array can have the name beside the names that `list` gives: a name belongs to an
/// array or to a level, not to both. `given_up` is the name that a renamed array had before; it is
/// empty for a new array.
/// Cost     O(levels of the name) calls of `list`
/// Throws   already_exists naming the array and the level
void require_free_path(std::string_view name, std::string_view given_up, const name_list& list);

}  // namespace shale::arrays
