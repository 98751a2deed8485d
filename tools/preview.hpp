// Showing the corners of arrays that are too large to be computed for showing.
#pragma once

#include "shale/executor.hpp"
#include "shale/expr.hpp"
#include "shale/tensor.hpp"

namespace shale::tools {

/// A tensor that `to_string(…, options)` prints like the whole of `values`, of which only the
/// elements that it prints have been computed; the others hold nothing.
/// Cost     O(edge_items ^ rank) elements; address space, but no memory, for the rest
tensor preview(const expr& values, const print_options& options, executor& on);

}  // namespace shale::tools
