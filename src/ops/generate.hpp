// Leaves that are computed from coordinates: ranges, tilings, repetitions, concatenations.
#pragma once

#include <memory>
#include <vector>

#include "ops/graph.hpp"

namespace shale::ops {

/// Fills blocks of one leaf. `start` are the coordinates of the block's first element in the leaf's
/// own shape; rows run along the axis before the last one.
/// Threads  fill may be called from several threads at once
class generator {
 public:
  virtual ~generator() = default;
  virtual void fill(const index_t* start, std::byte* out, index_t inner, index_t outer) const = 0;
};

/// What computes the leaf, given the tensors behind its `generator_inputs`, in their order; null
/// for nodes that are no generators.
std::unique_ptr<generator> make_generator(const node& leaf, std::vector<tensor> inputs);

}  // namespace shale::ops
