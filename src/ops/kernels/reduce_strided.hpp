// Runs folds over contiguous elements on states and values with any strides.
//
// A fold is written for two shapes: a run of values into one state, and rows of values into a row
// of states. What is strided is packed first. Runs are cut every `run_elements` values, at places
// that depend on the block's shape alone, so a result's bits do not depend on the layout.
#pragma once

#include <cstddef>

#include "shale/index.hpp"

namespace shale::ops::kernels {

/// Most values of one run.
inline constexpr index_t run_elements = 2048;

/// Most columns folded side by side.
inline constexpr index_t tile_columns = 512;

/// Room for the accumulators of a tile of columns.
inline constexpr index_t column_bytes = tile_columns * 6 * 8;

struct fold_shape {
  index_t value_bytes;

  /// `count` (1 … run_elements) contiguous values into one state.
  void (*run)(std::byte* state, const std::byte* values, index_t count);

  // A tile of columns: `begin` empties the accumulators, `rows` may come several times (`before`:
  // the rows so far), `end` merges them into the states, which lie `state_stride` bytes apart.
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
