// Indexing of values, as in a[1:, None]: NumPy's basic indexing.
#pragma once

#include <vector>

#include "language/value.hpp"

namespace shale::tools {

/// `object[entries…]`. An array takes integers, slices, `...` and None; a tuple one integer.
/// Throws   invalid_argument: a list or an array as an index, an object without elements, what
///          `expr` throws
value index_value(const value& object, const std::vector<value>& entries);

}  // namespace shale::tools
