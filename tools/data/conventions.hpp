// What the attributes of an array say by convention: by those of CF and xarray, the names of its
// axes, the unit of its elements, and the arrays that hold its coordinates; by that of Shale, what
// its integers stand for.
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

  /// The names of the arrays with the coordinates of each axis, empty if there is none; and those
  /// of further arrays with coordinates. No axes if none has coordinates.
  std::vector<std::string> axes;
  std::vector<std::string> others;

  /// Why a part of this is missing: an attribute is not what it should be, or coordinates do not
  /// fit.
  std::optional<error> problem;

  /// Adds what there is to the facts about the array, except the logical dtype.
  void add_to(facts& list) const;

  /// Whether this has the value of that attribute.
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
