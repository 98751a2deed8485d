// Folds or scans the values of one block.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "ops/kernels/operations/operations.hpp"
#include "ops/kernels/strided/scan_strided.hpp"
#include "ops/passes/nontemporal_run.hpp"
#include "ops/passes/tape.hpp"
#include "parallel/blocks/nontemporal_copy.hpp"
#include "parallel/plan/plan.hpp"

namespace shale::ops {

/// The positions of a block's values (see reducer::reads_positions).
struct block_positions {
  index_t first = 0;
  index_t inner_step = 0;
  index_t outer_step = 0;
};

/// The positions of the values of the block at `start`. Operand `operand` of the plan stands for
/// the positions: its offset in bytes is the position.
inline block_positions positions_of(const parallel::plan& over, int operand, const index_t* start) {
  const dims& steps = over.strides_bytes(operand);
  const index_t rank = over.rank();
  return {over.offset_bytes(operand, start), steps[rank - 1], rank >= 2 ? steps[rank - 2] : 0};
}

/// Folds the values of a block into its states. Strides are in bytes.
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

/// Scans the values of a block, beginning with its states. Strides are in bytes. Afterwards the
/// states include the values.
inline void scan_block(const scanner& chosen, const tape::block_values& results,
                       const tape::block_values& states, const tape::block_values& values,
                       index_t inner, index_t outer) {
  std::byte* const data[] = {results.data, states.data, values.data};
  const index_t strides[] = {results.inner_stride, states.inner_stride, values.inner_stride,
                             results.outer_stride, states.outer_stride, values.outer_stride};
  chosen.scan(data, strides, inner, outer);
}

/// Whether scan_past_the_cache can be used: the scan runs along rows, and these are long and
/// contiguous.
inline bool can_scan_past_the_cache(const scanner& chosen, const tape::block_values& results,
                                    const tape::block_values& states, index_t inner) {
  const auto item = static_cast<index_t>(item_bytes(chosen.result));
  return states.inner_stride == 0 && results.inner_stride == item &&
         inner * item >= nontemporal_run::row_bytes_min;
}

/// Does the same as scan_block, but stores the results past the cache. Each piece of results first
/// goes to a buffer that stays in the L1 cache. Rows are cut into pieces where the scanner itself
/// cuts them, so the results have the same bits.
inline void scan_past_the_cache(const scanner& chosen, const tape::block_values& results,
                                const tape::block_values& states, const tape::block_values& values,
                                index_t inner, index_t outer) {
  constexpr index_t item_bytes_max = 16, line_bytes = 64;
  alignas(line_bytes) std::array<std::byte, kernels::scan_run_elements * item_bytes_max> buffer;
  const auto item = static_cast<index_t>(item_bytes(chosen.result));
  for (index_t row = 0; row < outer; ++row)
    for (index_t done = 0; done < inner; done += kernels::scan_run_elements) {
      const index_t count = std::min(kernels::scan_run_elements, inner - done);
      std::byte* const from = values.data + row * values.outer_stride + done * values.inner_stride;
      scan_block(chosen, {buffer.data(), item, 0}, {states.data + row * states.outer_stride, 0, 0},
                 {from, values.inner_stride, 0}, count, 1);
      const parallel::needed_soon next{from + count * values.inner_stride,
                                       line_bytes * values.inner_stride / item};
      parallel::copy_nontemporally(results.data + row * results.outer_stride + done * item,
                                   buffer.data(), static_cast<std::size_t>(count * item),
                                   {&next, next.step > 0 && next.step <= 4 * line_bytes ? 1U : 0U});
    }
}

}  // namespace shale::ops
