// Units and coordinates of arrays, by the conventions of CF and xarray. Both are stored as texts in
// attributes. `units` holds the unit, and `coordinates` a list of names with blanks between them.
// The array that has the name of a dimension holds the coordinates along that dimension
// (dimension_names.hpp).
//
//   transaction change = file.begin();
//   set_dimension_names(change, "t2m", {"time", "y", "x"});   // with 1-d arrays "time", "y", "x"
//   set_units(change, "t2m", "K");
//   set_coordinate_names(change, "t2m", {"lat", "lon"});      // with 2-d arrays over y and x
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shale/array.hpp"
#include "shale/container.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The keys of the attributes.
inline constexpr std::string_view units_key = "units";
inline constexpr std::string_view coordinates_key = "coordinates";

/// The unit of the elements of an array, for example "m s-1"; nothing if it has none. Shale does
/// not parse it.
/// Throws   invalid_argument (the attribute is no text), corrupt (it is damaged), each naming the
///          array; out_of_memory
std::optional<std::string> units(const array& stored);

/// Sets the unit of the elements of an array. The elements stay as they are.
/// Cost     as transaction::set_attribute
/// Throws   as transaction::set_attribute; invalid_argument also if the text is not UTF-8
void set_units(transaction& change, std::string_view array, std::string_view text);

/// The names in the attribute `coordinates` of an array, in their order; none if it does not have
/// the attribute.
/// Throws   as units
std::vector<std::string> coordinate_names(const array& stored);

/// Names the arrays that hold further coordinates of an array, besides the arrays with the names of
/// its dimensions. Examples are the latitudes of a curved grid, and a name for each station. The
/// arrays need not exist yet. A name without '/' is that of an array in the same level of names. A
/// name with '/' is a path that begins in that level, or in the top level if it starts with '/'.
/// Cost     as transaction::set_attribute
/// Throws   as transaction::set_attribute; invalid_argument also if a name is empty, has a blank,
///          or is not UTF-8
void set_coordinate_names(transaction& change, std::string_view array,
                          const std::vector<std::string>& names);

/// One axis of an array.
struct axis_coordinates {
  std::string dimension;          ///< the name of the axis; empty if it has none
  std::optional<array> variable;  ///< the coordinates of its positions, if they are stored
};

/// The coordinates of an array.
struct array_coordinates {
  std::vector<axis_coordinates> axes;  ///< in the order of the axes
  std::vector<array> others;           ///< those of `coordinate_names`, in their order
};

/// Finds the coordinates of the array of that name. The coordinates of an axis are an array in the
/// same level of names. It has one axis, and its name is that of the dimension. If it has a
/// dimension name of its own, that is the same name too. An array can be its own coordinates.
///
///    const array_coordinates found = find_coordinates(file.latest(), "t2m");
///    tensor times = found.axes[0].variable->read();
///
/// Cost     O(log arrays) pages of metadata for each axis and each name, and no element
/// Throws   as snapshot::at for the array, and for those that it names; as dimension_names, units
///          and, for an array of `coordinate_names`, logical_dtype_of; not_found also if such an
///          array does not exist; corrupt also if coordinates do not fit: they have another extent
///          than the axis, or an axis that the array does not have (the axis of the characters of
///          texts is allowed). Each names both arrays
array_coordinates find_coordinates(const snapshot& generation, std::string_view name);

}  // namespace shale
