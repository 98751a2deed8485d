// NumPy-like expressions over arrays, read into lazy ones:
//
//   dz = (z[1:-1, 2:] - z[1:-1, :-2]) / (2 * dx); degrees(arctan(abs(dz)))
//
// Python's operators with Python's precedence, indexing with integers, slices, `...` and None,
// calls with keyword arguments, methods (a.sum(axis=0)), a.T, a.shape, a.size, a.ndim, a.dtype,
// tuples, dtypes by name, pi, e, inf, nan. Names may be given to parts: `name = …; …`; the last
// part is the result. `np.` may stand in front of functions. Nothing is computed here.
//
// Not Python: and / or / not (write & | ~), chained comparisons, if / else (write where), lists of
// indices, << and >>.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "shale/expr.hpp"
#include "value.hpp"

namespace shale::tools {

/// Arrays and plain values by the name an expression knows them under.
using bindings = std::map<std::string, value, std::less<>>;

/// How deeply brackets, calls, operators and tuples may nest, and how many operations one expression may
/// ask for, an array that is joined to others counting as one: whoever reads the graph may recurse over it.
inline constexpr int max_expression_depth = 100;
inline constexpr std::size_t max_expression_operations = 2000;

/// `text` as one lazy expression over `arrays`.
/// Throws   located_error, a caret under the place: what is no expression, unknown names, whatever
///          the operations themselves refuse (shapes, dtypes, axes), too deep, too long
expr parse_expression(std::string_view text, const bindings& arrays);

/// The same where the result need not be an array: numbers, tuples … stay what they are.
value parse_value(std::string_view text, const bindings& arrays);

/// Whether `text` can be bound by --let and then named: a Python identifier that is no keyword.
bool is_bindable(std::string_view text) noexcept;

}  // namespace shale::tools
