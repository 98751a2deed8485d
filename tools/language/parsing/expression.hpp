// Parses NumPy-like expressions over arrays into lazy expressions:
//
//   dz = (z[1:-1, 2:] - z[1:-1, :-2]) / (2 * dx); degrees(atan(abs(dz)))
//
// The language has Python's operators with Python's precedence, indexing with integers, slices,
// `...`, None, arrays and lists, calls with keyword arguments and lists of numbers as arrays,
// methods (a.sum(axis=0)), a.T,
// a.shape, a.size, a.ndim, a.dtype, tuples, dtypes by name, pi, e, inf and nan. An assignment `name
// = …;` names a part; the last part is the result. `np.` may precede a function. Parsing computes
// no elements, with these exceptions: masks, the counts of repeat, arrays of rank 0 that are given
// as numbers, the functions in order_functions.cpp and linear_functions.cpp, permutations, and
// random draws by weights.
//
// The language has no and / or / not (write & | ~), no chained comparisons, no if / else
// (write where).
#pragma once

#include <cstddef>
#include <string_view>

#include "language/parsing/scope.hpp"
#include "language/values/value.hpp"
#include "shale/functions.hpp"

namespace shale::tools {

/// The deepest nesting of brackets, calls, operators and tuples, and the most operations of one
/// expression. Each element of a tuple that is an argument counts as an operation too, since it may
/// be an array that is joined to others. These limits bound the recursion over the graph.
inline constexpr int expression_depth_max = 100;
inline constexpr std::size_t expression_operations_max = 2000;

/// Parses `text` into one lazy expression over `arrays`.
/// Throws   located_error, with a caret under the place: no valid expression, an unknown name, an
///          operation that refuses its operands (shapes, dtypes, axes), too deep, too long
expr parse_expression(std::string_view text, const bindings& arrays);

/// Parses `text` into a value, which may also be a number, a tuple or another plain value.
/// Throws   as parse_expression
value parse_value(std::string_view text, const bindings& arrays);

}  // namespace shale::tools
