// Prints the corners of an expression without computing all of it.
#pragma once

#include <string>

#include "shale/executor.hpp"
#include "shale/functions.hpp"
#include "shale/print.hpp"

namespace shale::tools {

/// The text that `to_string(eval(values), options)` gives. Only the elements in it are computed.
/// Cost     O(edge_items ^ rank) elements, whatever the size of `values`
std::string preview(const expr& values, const print_options& options);

}  // namespace shale::tools
