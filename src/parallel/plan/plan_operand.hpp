// Describes the operands of a plan, and what a call asks of its cuts.
#pragma once

#include <cstddef>
#include <optional>

#include "shale/dims.hpp"
#include "shale/layout.hpp"

namespace shale::parallel {

/// The largest number of operands: `apply` needs 8, fused expressions need more.
inline constexpr int max_operands = 64;

struct plan_operand {
  /// The operand's layout, already broadcast to the common shape.
  layout where;
  std::size_t item_bytes = 1;

  /// Whether this operand's strides help to order the axes. The states of a reduction do not: they
  /// are few, and the order in which values lie in memory is what matters.
  bool orders = true;

  /// The length of the lane that a kernel reaches from each element, and the distance, in elements,
  /// between neighbours in the lane. The plan does not cut lanes, and blocks only have their first
  /// elements.
  index_t lane_size = 1;
  index_t lane_stride = 0;
};

struct plan_options {
  /// The elements of a tile, without a limit on the bytes that it touches; 0: the plan chooses
  /// (plan.5).
  index_t tile_elements = 0;

  /// The most elements of a tile whose size the plan chooses.
  index_t elements_max = index_t{1} << 62;

  /// The most elements of a two-dimensional block.
  index_t block_elements = index_t{1} << 62;

  /// Keeps the caller's axes: they are neither sorted, merged nor reversed, so block positions are
  /// indices of the caller.
  bool keep_axes = false;

  /// With keep_axes: the tiles' extents; the plan chooses them if this is empty.
  std::optional<dims> tile_shape = std::nullopt;

  /// With a reduction's states (`orders` is false): the most states of a tile, so that partial
  /// states stay small.
  index_t state_elements = 4096;
};

}  // namespace shale::parallel
