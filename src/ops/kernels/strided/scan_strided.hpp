// Runs scans, which are written for contiguous values, on states, values and results with any
// strides.
//
// A scan is written for two shapes: a run of values that one state goes through, and rows of values
// that go through a row of states, side by side. Which shape is used depends on the axis along
// which the states have stride 0, the scanned one. Values and results with other strides than those
// of contiguous elements are packed and unpacked. All cuts depend on the block's shape alone, so
// the bits of a result do not depend on the layout.
#pragma once

#include "ops/kernels/strided/reduce_strided.hpp"

namespace shale::ops::kernels {

/// The most values of one run, and the most columns that are scanned side by side. Rows are cut
/// after every run.
inline constexpr index_t scan_run_elements = 512;

struct scan_shape {
  index_t value_bytes;
  index_t result_bytes;

  /// Scans `count` (1 … scan_run_elements) contiguous values: result i is that of the state and the
  /// values up to value i. The state then includes all of them. Values and results may be the same
  /// memory.
  void (*run)(std::byte* state, const std::byte* values, std::byte* results, index_t count);

  // These three scan a tile of columns. `begin` takes the states, which lie `state_stride` bytes
  // apart. `row` scans one row and may be called several times. `end` puts the states back.
  void (*begin)(std::byte* columns, const std::byte* states, index_t state_stride, index_t count);
  void (*row)(std::byte* columns, const std::byte* values, std::byte* results, index_t count);
  void (*end)(const std::byte* columns, std::byte* states, index_t state_stride, index_t count);
};

/// One axis of a block. `state_stride` is 0 if the block is scanned along it.
struct scanned_axis {
  index_t extent;
  index_t result_stride;
  index_t state_stride;
  index_t value_stride;
};

struct scanned_block {
  std::byte* results;
  std::byte* states;
  const std::byte* values;
  scanned_axis inner;
  scanned_axis outer;
};

/// Scans a block of values, by the contract of `scanner::scan`.
void scan_strided(const scan_shape& scan, const scanned_block& block);

}  // namespace shale::ops::kernels
