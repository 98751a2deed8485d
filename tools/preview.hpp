// Showing the corners of arrays that are too large to be computed for showing.
#pragma once

#include <string>

#include "shale/executor.hpp"
#include "shale/expr.hpp"
#include "shale/print.hpp"

namespace shale::tools {

/// What `to_string(…, options)` says of the whole of `values`, of which only what it shows is
/// computed.
/// Cost     O(edge_items ^ rank) elements, however many there are
std::string preview(const expr& values, const print_options& options, executor& on);

}  // namespace shale::tools
