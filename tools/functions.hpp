// The functions that expressions can call, under NumPy's names.
#pragma once

#include <string_view>
#include <vector>

#include "arguments.hpp"

namespace shale::tools {

struct function {
  std::string_view name;

  /// Takes its parameters and leaves `finish` to the caller.
  value (*call)(arguments&);

  /// How it is called: "where(condition, a, b)".
  std::string_view signature;

  /// Whether arrays have it as a method too: a.sum(axis=0).
  bool method = false;
};

/// In the order in which help lists them; names are unique, synonyms stand beside each other.
const std::vector<function>& functions();

/// The function of that name, or null.
const function* find_function(std::string_view name);

/// pi, e, inf, nan; null for other names.
const double* find_constant(std::string_view name);

}  // namespace shale::tools
