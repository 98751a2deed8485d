// Indexing of values, as in a[1:, None] and a[[0, 2], a[0] > 3]: NumPy's indexing.
#pragma once

#include <vector>

#include "language/values/value.hpp"

namespace shale::tools {

/// `object[entries…]`. An array takes integers, slices, `...`, None, arrays and lists of integers
/// or of bools; a tuple takes one integer. Masks are evaluated at once.
/// Throws   invalid_argument: an object without elements, a list that is no array, what
///          `expr::index` throws
value index_value(const value& object, const std::vector<value>& entries);

/// An index array: an array, a number, or lists of integers or of bools.
/// Throws   invalid_argument
expr to_index_array(const value& given);

}  // namespace shale::tools
