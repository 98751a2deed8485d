// Makes generators for leaves whose elements are computed from coordinates: ranges, random numbers,
// tilings, repetitions, concatenations, indexed elements and sums of windows.
#pragma once

#include <memory>
#include <vector>

#include "ops/graph/graph.hpp"
#include "ops/passes/tape.hpp"

namespace shale::ops {

/// Makes the generator of a leaf. `inputs` are the tensors of its `generator_inputs`, in their
/// order. Returns null for other nodes.
std::unique_ptr<leaf_generator> make_generator(const node& leaf, std::vector<tensor> inputs);

}  // namespace shale::ops
