// Python's operators on the values of expressions.
#pragma once

#include <string_view>

#include "language/values/value.hpp"

namespace shale::tools {

/// Applies `symbol` ("+", "-", "~") to `a`, or ("+", "==", "@", …) to `a` and `b`. Operators on
/// plain numbers give plain numbers, by Python's rules. If an operand is an array, the
/// result is one.
/// Throws   invalid_argument: an operand that is neither number nor array, a division of plain
///          numbers by zero, an integer result beyond 64 bits, what `expr` throws
value apply_unary(std::string_view symbol, const value& a);
value apply_binary(std::string_view symbol, const value& a, const value& b);

}  // namespace shale::tools
