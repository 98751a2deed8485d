// The functions that expressions can call: those of the public headers, under their names in the
// array API standard and under NumPy's synonyms.
#pragma once

#include <string_view>
#include <vector>

#include "language/values/arguments.hpp"

namespace shale::tools {

struct function {
  std::string_view name;

  /// Takes the arguments of its parameters. The caller calls `finish` afterwards.
  value (*call)(arguments&);

  /// A call with the names of all parameters, as in "where(condition, x, y)". A parameter with a
  /// default shows it; parameters after a "*" are given by their names.
  std::string_view signature;

  /// Whether it can also be called as a method of an array, as in a.sum(axis=0).
  bool method = false;
};

/// All functions, in the order in which help lists them. Names are unique.
const std::vector<function>& functions();

/// Other names of the function `name`.
std::vector<std::string_view> synonyms_of(std::string_view name);

/// The function with this name or synonym; null if there is none.
const function* find_function(std::string_view name);

}  // namespace shale::tools
