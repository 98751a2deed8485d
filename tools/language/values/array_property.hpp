// The attributes that NumPy's arrays have: a.T, a.shape, a.size, a.ndim, a.dtype.
#pragma once

#include <optional>
#include <string_view>

#include "language/values/value.hpp"

namespace shale::tools {

/// The attribute `name` of `array`; nothing if arrays have no such attribute.
std::optional<value> array_property(const expr& array, std::string_view name);

}  // namespace shale::tools
