// Checks the names of new arrays. HDF5 and Zarr must be able to take them too, so '/' separates
// levels, and every level has a name.
#pragma once

#include <string_view>

namespace shale::arrays {

/// Checks the name of an array that is created or renamed. Arrays in files may have other names;
/// they stay readable.
/// Throws   invalid_argument naming the part and the reason: the format does not allow the name
///          (empty, too long, not UTF-8, control characters), a level has no name ("/a", "a/",
///          "a//b"), or a level consists of periods only ("..")
void require_new_name(std::string_view name);

}  // namespace shale::arrays
