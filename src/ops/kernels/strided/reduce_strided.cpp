#include "ops/kernels/strided/reduce_strided.hpp"

#include <algorithm>
#include <utility>

#include "ops/kernels/strided/run_strided.hpp"

namespace shale::ops::kernels {

namespace {

constexpr index_t widest_value = 16;

/// A run of fewer values costs more to start and end than to fold.
constexpr index_t short_run = 8;

using axis = folded_axis;

bool is_folded(const axis& along) { return along.state_stride == 0; }

void fold_run(const fold_shape& fold, std::byte* state, const std::byte* values, index_t position,
              axis row) {
  alignas(64) std::byte packed[run_elements * widest_value];
  index_t first_element = 0;
  if (fold.run_two != nullptr && row.value_stride == fold.value_bytes) {
    for (; row.extent - first_element >= 2 * run_elements; first_element += 2 * run_elements)
      fold.run_two(state, values + first_element * row.value_stride);
  }
  for (; first_element < row.extent; first_element += run_elements) {
    const index_t count = std::min(run_elements, row.extent - first_element);
    const std::byte* run = values + first_element * row.value_stride;
    if (row.value_stride != fold.value_bytes && count > 1) {
      pack(packed, run, fold.value_bytes, row.value_stride, 0, count, 1);
      run = packed;
    }
    const index_t first = position + first_element * row.position_step;
    fold.run(state, run, count, {first, row.position_step, count, 0});
  }
}

// Folds both axes into one state. Short rows are joined to longer runs.
void fold_block(const fold_shape& fold, std::byte* state, const std::byte* values, index_t position,
                axis inner, axis outer) {
  const index_t together = std::max<index_t>(1, run_elements / inner.extent);
  if (together == 1) {
    for (index_t row = 0; row < outer.extent; ++row)
      fold_run(fold, state, values + row * outer.value_stride, position + row * outer.position_step,
               inner);
    return;
  }
  alignas(64) std::byte packed[run_elements * widest_value];
  const bool dense = inner.value_stride == fold.value_bytes &&
                     outer.value_stride == inner.extent * fold.value_bytes;
  for (index_t row = 0; row < outer.extent; row += together) {
    const index_t rows = std::min(together, outer.extent - row);
    const std::byte* run = values + row * outer.value_stride;
    if (!dense) {
      pack(packed, run, fold.value_bytes, inner.value_stride, outer.value_stride, inner.extent,
           rows);
      run = packed;
    }
    fold.run(state, run, rows * inner.extent,
             {position + row * outer.position_step, inner.position_step, inner.extent,
              outer.position_step});
  }
}

// Folds along the outer axis. The columns along the inner axis are folded side by side. Strided
// columns are packed, a stack of rows at a time, so that they are folded as contiguous ones are.
void fold_columns(const fold_shape& fold, std::byte* states, const std::byte* values,
                  index_t position, axis inner, axis outer) {
  alignas(64) std::byte columns[column_bytes];
  alignas(64) std::byte packed[tile_columns * widest_value];
  const bool dense = inner.value_stride == fold.value_bytes || inner.extent == 1;
  const index_t tile = dense ? tile_columns : tile_columns / stack_rows;
  for (index_t first_column = 0; first_column < inner.extent; first_column += tile) {
    const index_t count = std::min(tile, inner.extent - first_column);
    const std::byte* first = values + first_column * inner.value_stride;
    fold.begin(columns, count);
    if (dense) {
      fold.rows(columns, first, outer.value_stride, count, outer.extent, 0);
    } else {
      for (index_t row = 0; row < outer.extent; row += stack_rows) {
        const index_t rows = std::min(stack_rows, outer.extent - row);
        pack(packed, first + row * outer.value_stride, fold.value_bytes, inner.value_stride,
             outer.value_stride, count, rows);
        fold.rows(columns, packed, count * fold.value_bytes, count, rows, row);
      }
    }
    fold.end(columns, states + first_column * inner.state_stride, inner.state_stride, count,
             outer.extent, {position, outer.position_step, outer.extent, 0});
  }
}

}  // namespace

void reduce_strided(const fold_shape& fold, const folded_block& block) {
  axis inner = block.inner;
  axis outer = block.outer;
  // An axis of one element counts as folded, because its stride is never used.
  if (inner.extent == 1) inner.state_stride = 0;
  if (outer.extent == 1) outer.state_stride = 0;
  if (inner.extent == 1) std::swap(inner, outer);
  // A few long columns are faster as runs along the outer axis, and many short rows are faster as
  // columns side by side. Both are the same block with its axes swapped.
  const bool few_columns = !is_folded(inner) && is_folded(outer) && inner.extent < short_run &&
                           outer.extent >= short_run;
  const bool short_rows = is_folded(inner) && !is_folded(outer) && inner.extent < short_run &&
                          outer.extent >= short_run;
  if (few_columns || short_rows) std::swap(inner, outer);

  std::byte* const states = block.states;
  const std::byte* const values = block.values;
  const index_t position = block.first_position;
  if (is_folded(inner) && is_folded(outer)) {
    fold_block(fold, states, values, position, inner, outer);
  } else if (is_folded(inner)) {
    for (index_t row = 0; row < outer.extent; ++row)
      fold_run(fold, states + row * outer.state_stride, values + row * outer.value_stride, position,
               inner);
  } else if (is_folded(outer)) {
    fold_columns(fold, states, values, position, inner, outer);
  } else {
    for (index_t row = 0; row < outer.extent; ++row)
      fold_columns(fold, states + row * outer.state_stride, values + row * outer.value_stride,
                   position, inner, axis{1, 0, 0, 0});
  }
}

}  // namespace shale::ops::kernels
