// Generates the elements of an indexed leaf: those of its input at positions that indices name.
#pragma once

#include <memory>
#include <vector>

#include "ops/graph/graph.hpp"
#include "ops/passes/tape.hpp"

namespace shale::ops {

/// `inputs` are the tensors of the leaf's input and of its indices, in this order.
/// Throws   invalid_argument from `fill` if an index is out of range
std::unique_ptr<leaf_generator> make_indexed_generator(const detail::indexed_leaf& leaf,
                                                       const std::vector<tensor>& inputs);

}  // namespace shale::ops
