// Names of the dimensions of an array, by xarray's convention for Zarr: an attribute
// `_ARRAY_DIMENSIONS` that is a list of texts, one for each axis.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shale/array.hpp"
#include "shale/container.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The key of the attribute.
inline constexpr std::string_view dimension_names_key = "_ARRAY_DIMENSIONS";

/// The names of the dimensions of an array, in the order of its axes; nothing if it has none. Names
/// may be equal, and empty.
/// Throws   invalid_argument (the attribute is no list of texts), corrupt (there is not one name
///          for each axis; a damaged attribute), unsupported (an attribute of a later version), each
///          naming the array; out_of_memory
std::optional<std::vector<std::string>> dimension_names(const array& stored);

/// Names the dimensions of an array. This replaces the names that they had.
///
///    transaction change = file.begin();
///    set_dimension_names(change, "dem", {"y", "x"});
///
/// Cost     as transaction::set_attribute
/// Throws   as transaction::set_attribute; invalid_argument also if there is not one name for each
///          axis, or if a name is not UTF-8
void set_dimension_names(transaction& change, std::string_view array,
                         const std::vector<std::string>& names);

}  // namespace shale
