// Arrays that an expression writes as lists of numbers, as in [[1, 2], [3, 4]].
#pragma once

#include "language/values/value.hpp"
#include "shale/tensor.hpp"

namespace shale::tools {

/// The array of nested lists or tuples of numbers. Bools alone give bool, integers and bools int64,
/// and floats among them float64, as in NumPy; a list without elements gives int64.
/// Throws   invalid_argument: lists that differ in length or depth, elements that are no numbers,
///          too many elements
tensor to_array(const value& list);

/// An array, a number or a list of numbers as an operand of a function.
/// Throws   as to_array and to_expr
expr to_operand(const value& given);

}  // namespace shale::tools
