// Describes the operands of a plan, and what a call asks of its cuts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "shale/dims.hpp"
#include "shale/layout.hpp"

namespace shale::parallel {

/// The largest number of operands: `apply` needs 8, fused expressions need more.
inline constexpr int operands_max = 64;

/// The role says what the strides of an operand count. The strides of elements decide the order of
/// axes and the sizes of tiles. The strides of states and positions are not distances that the loop
/// moves through in memory. They only break ties: they order axes between which the strides of
/// elements do not decide.
enum class operand_role : std::uint8_t {
  elements,   ///< elements of a tensor
  states,     ///< states of a reduction: 0 along the folded axes
  positions,  ///< positions of elements: 0 along the axes that a reduction keeps
};

struct plan_operand {
  /// The operand's layout, already broadcast to the common shape.
  shale::layout layout;
  std::size_t item_bytes = 1;
  operand_role role = operand_role::elements;

  bool decides_axis_order() const noexcept { return role == operand_role::elements; }

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

  /// If operands disagree on the fastest axis, a block is a whole tile instead of a small square
  /// (plan.4).
  bool whole_tile_blocks = false;

  /// Keeps the caller's axes: they are neither sorted, merged nor reversed, so block positions are
  /// indices of the caller.
  bool keep_axes = false;

  /// Replaces neighbouring axes by one where all operands allow it. Without it, operands can be
  /// moved to memory with any strides.
  bool merge_axes = true;

  /// With keep_axes: the tiles' extents; the plan chooses them if this is empty.
  std::optional<dims> tile_shape = std::nullopt;

  /// With the states of a reduction: the most states of a tile, so that partial
  /// states stay small.
  index_t state_elements = 4096;
};

}  // namespace shale::parallel
