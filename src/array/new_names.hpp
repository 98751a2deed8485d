// Which names an array may be given: those that HDF5 and Zarr can take too, so that '/' always
// separates levels that have names.
#pragma once

#include <string_view>

namespace shale::arrays {

/// For arrays that are created or renamed. Files may hold other names, which stay readable.
/// Throws   invalid_argument, saying which part and why, for what is no name in the format (empty,
///          too long, not UTF-8, control characters), for a level without a name ("/a", "a/",
///          "a//b"), and for one of periods only ("..")
void require_new_name(std::string_view name);

}  // namespace shale::arrays
