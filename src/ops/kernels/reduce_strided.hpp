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

/// The most columns that are folded side by side. More are read faster, as long as their
/// accumulators stay in the caches.
inline constexpr index_t tile_columns = 1024;

/// The most bytes of the accumulators of a tile of columns.
inline constexpr index_t column_bytes = tile_columns * 6 * 8;

struct fold_shape {
  index_t value_bytes;

  /// Folds `count` (1 … run_elements) contiguous values into one state.
  void (*run)(std::byte* state, const std::byte* values, index_t count);

  // These three fold a tile of columns. `begin` empties the accumulators. `rows` adds rows and may
  // be called several times; `before` is the number of rows added earlier. `end` merges the
  // accumulators into the states, which lie `state_stride` bytes apart.
  void (*begin)(std::byte* columns, index_t count);
  void (*rows)(std::byte* columns, const std::byte* values, index_t row_stride, index_t count,
               index_t rows, index_t before);
  void (*end)(const std::byte* columns, std::byte* states, index_t state_stride, index_t count,
              index_t rows);
};

/// The contract of `reducer::accumulate`.
void reduce_strided(const fold_shape& fold, std::byte* const* data, const index_t* strides_bytes,
                    index_t inner, index_t outer);

}  // namespace shale::ops::kernels
