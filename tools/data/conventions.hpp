// What the attributes of an array say by convention. By the conventions of CF and xarray, they name
// its axes, the unit of its elements, and the arrays that hold its coordinates. By the convention
// of Shale, they say what its integers stand for.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shale/array.hpp"
#include "shale/error.hpp"
#include "shale/logical_dtype.hpp"
#include "shale/snapshot.hpp"
#include "terminal/table.hpp"

namespace shale::tools {

struct conventions {
  std::vector<std::string> dimensions;  ///< one for each axis; none if the axes have no names
  std::optional<std::string> units;
  std::optional<logical_dtype> logical;

  /// `axes` has the name of the array with the coordinates of each axis, or an empty name; it has
  /// no entries if no axis has coordinates. `others` names further arrays with coordinates.
  std::vector<std::string> axes;
  std::vector<std::string> others;

  /// Why a part of this is missing: an attribute does not follow its convention, or coordinates do
  /// not fit.
  std::optional<error> problem;

  /// Adds all that is known, except the logical dtype, to the facts about the array.
  void add_to(facts& list) const;

  /// Whether these conventions show the value of the attribute `key`.
  bool shows(std::string_view key) const;

  /// The same as JSON: "dimensions", "units", "coordinates" and "conventions_problem".
  void add_to(nlohmann::json& json) const;

  /// The shape with the names of its axes: "(y: 344, x: 403)".
  std::string named(const dims& shape) const;
};

/// The conventions of an array of that generation.
/// Cost     looks for an array for each axis that has a name
/// Throws   io, out_of_memory; other problems of the file become `problem`
conventions conventions_of(const snapshot& generation, const array& stored);

}  // namespace shale::tools
