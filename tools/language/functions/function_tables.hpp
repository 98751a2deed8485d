// The tables of functions, one for each kind. A table's source holds the functions that it names.
#pragma once

#include <vector>

#include "language/functions/functions.hpp"

namespace shale::tools {

/// Functions of numbers and of elements, and products of matrices.
std::vector<function> math_functions();

/// Functions that reduce axes, or go along them.
std::vector<function> reductions();

/// Functions that draw random numbers.
std::vector<function> random_functions();

/// Functions of the order of elements. They evaluate at once.
std::vector<function> order_functions();

/// Linear algebra of matrices. They evaluate at once.
std::vector<function> linear_functions();

/// Functions that pad, turn and spread arrays.
std::vector<function> arrangement_functions();

/// Products of arrays of any rank.
std::vector<function> product_functions();

/// Functions that create, join and rearrange arrays.
std::vector<function> array_functions();

}  // namespace shale::tools
