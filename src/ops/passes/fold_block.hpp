// Folds or scans one block of values, which a tape has made.
#pragma once

#include "ops/kernels/operations/operations.hpp"
#include "ops/passes/tape.hpp"
#include "parallel/plan/plan.hpp"

namespace shale::ops {

/// The positions of a block's values, see reducer::reads_positions.
struct block_positions {
  index_t first = 0;
  index_t inner_step = 0;
  index_t outer_step = 0;
};

/// The positions of the block at `start`, if the plan's operand `operand` has their layout.
inline block_positions positions_of(const parallel::plan& over, int operand, const index_t* start) {
  const dims& steps = over.strides_bytes(operand);
  const index_t rank = over.rank();
  return {over.offset_bytes(operand, start), steps[rank - 1], rank >= 2 ? steps[rank - 2] : 0};
}

/// `states` are those of the block, in bytes.
inline void fold_block(const reducer& fold, const tape::block_values& states,
                       const tape::block_values& values, block_positions positions, index_t inner,
                       index_t outer) {
  if (fold.reads_positions) {
    std::byte* const data[] = {states.data, values.data,
                               reinterpret_cast<std::byte*>(&positions.first)};
    const index_t strides[] = {states.inner_stride, values.inner_stride, positions.inner_step,
                               states.outer_stride, values.outer_stride, positions.outer_step};
    fold.accumulate(data, strides, inner, outer);
  } else {
    std::byte* const data[] = {states.data, values.data};
    const index_t strides[] = {states.inner_stride, values.inner_stride, states.outer_stride,
                               values.outer_stride};
    fold.accumulate(data, strides, inner, outer);
  }
}

/// `states` are those of the block, in bytes. Afterwards they include its values.
inline void scan_block(const scanner& chosen, const tape::block_values& results,
                       const tape::block_values& states, const tape::block_values& values,
                       index_t inner, index_t outer) {
  std::byte* const data[] = {results.data, states.data, values.data};
  const index_t strides[] = {results.inner_stride, states.inner_stride, values.inner_stride,
                             results.outer_stride, states.outer_stride, values.outer_stride};
  chosen.scan(data, strides, inner, outer);
}

}  // namespace shale::ops
