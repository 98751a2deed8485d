// What stands in square brackets behind a value of an expression: NumPy's basic indexing.
#pragma once

#include <vector>

#include "value.hpp"

namespace shale::tools {

/// `object[entries…]`: integers, slices, `...` and None for arrays, one integer for tuples.
/// Throws   invalid_argument: lists and arrays of indices, what has no elements, what `expr` throws
value index_value(const value& object, const std::vector<value>& entries);

}  // namespace shale::tools
