// Finds the indices of a block's elements in the index space of a pass, although the plan has
// ordered and reversed the axes (pass_options::indices).
//
// Invariants
//   indices.1  every element has the index that it has in the caller's operands, whatever order,
//              direction or way its unit is visited in
#pragma once

#include "parallel/pass/unit.hpp"
#include "shale/apply_operands.hpp"

namespace shale::parallel {

/// The indices of the block at a position of a unit, in an index space of `rank` axes.
detail::block_indices indices_of(const unit& here, const block_position& position, index_t rank);

}  // namespace shale::parallel
