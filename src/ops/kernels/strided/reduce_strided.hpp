// Runs folds, which are written for contiguous values, on states and values with any strides.
//
// A fold is written for two shapes: a run of values into one state, and rows of values into a row
// of states. Strided values are packed first. Which shape is used depends on the axes along which
// the states have stride 0, the folded ones:
//   both axes      runs over whole rows; short rows are joined to one run
//   the inner one  a run for each row, into that row's state
//   the outer one  rows, side by side into the states of the columns
// Runs are cut after every `run_elements` values. All cuts depend on the block's shape alone, so
// the bits of a result do not depend on the layout.
#pragma once

#include <cstddef>

#include "shale/index.hpp"

namespace shale::ops::kernels {

/// The most values of one run.
inline constexpr index_t run_elements = 2048;

/// The most columns that are folded side by side. Wider tiles are read faster, as long as the
/// accumulators of their columns stay in the caches.
inline constexpr index_t tile_columns = 1024;

/// The number of rows in a *stack*, which `rows` folds at once; the last stack of a block may have
/// fewer. A fold may give other bits for a stack than for the same rows one by one.
inline constexpr index_t stack_rows = 4;

/// The most bytes of the accumulators of a tile of columns.
inline constexpr index_t column_bytes = tile_columns * 6 * 8;

/// The positions of the values of a run. The run is one or more rows of equal length, joined. No
/// step is negative.
struct run_positions {
  index_t first;
  index_t step;        // between neighbours in a row
  index_t row_values;  // the length of a row
  index_t row_step;    // between the first values of rows
};

struct fold_shape {
  index_t value_bytes;

  /// Folds `count` (1 … run_elements) contiguous values into one state.
  void (*run)(std::byte* state, const std::byte* values, index_t count,
              const run_positions& positions);

  /// Folds two whole runs that lie one after the other. The bits are those of two calls of `run`.
  /// Null if that is not faster, and for folds that read positions.
  void (*run_two)(std::byte* state, const std::byte* values);

  // These three fold a tile of columns. `begin` empties the accumulators. `rows` adds rows and may
  // be called several times; `before` is the number of rows added earlier, a multiple of
  // stack_rows. `end` merges the accumulators into the states, which lie `state_stride` bytes
  // apart. `positions` are the positions of a column's values, the same for every column.
  void (*begin)(std::byte* columns, index_t count);
  void (*rows)(std::byte* columns, const std::byte* values, index_t row_stride, index_t count,
               index_t rows, index_t before);
  void (*end)(const std::byte* columns, std::byte* states, index_t state_stride, index_t count,
              index_t rows, const run_positions& positions);
};

/// One axis of a block. `state_stride` is 0 if the axis is folded.
struct folded_axis {
  index_t extent;
  index_t state_stride;
  index_t value_stride;
  index_t position_step;
};

struct folded_block {
  std::byte* states;
  const std::byte* values;
  index_t first_position;
  folded_axis inner;
  folded_axis outer;
};

/// Folds a block of values into states, by the contract of `reducer::accumulate`.
void reduce_strided(const fold_shape& fold, const folded_block& block);

}  // namespace shale::ops::kernels
