// Generates the elements of a window leaf: sums of products of weights with the windows of an
// input.
#pragma once

#include <memory>

#include "ops/graph/graph.hpp"
#include "ops/passes/tape.hpp"

namespace shale::ops {

/// `weights` are contiguous. Neither tensor is read before `fill`.
std::unique_ptr<leaf_generator> make_window_generator(const detail::window_leaf& leaf,
                                                      const tensor& input, const tensor& weights,
                                                      dtype result);

}  // namespace shale::ops
