// Defines the options of a pass, and derives from them its index space and the description of each
// operand for a plan.
#pragma once

#include <optional>
#include <span>

#include "parallel/fold/fold.hpp"
#include "parallel/operands/loop_operand.hpp"
#include "parallel/plan/plan_operand.hpp"
#include "parallel/windows/window_walk.hpp"
#include "shale/region.hpp"

namespace shale::parallel {

struct pass_options {
  /// The index space of a pass without operands. Other passes have the shape of their operands.
  dims shape = {};

  /// The most elements of a block; 0: any number.
  index_t block_elements = 0;

  /// Whether a block is a whole tile, instead of a small square, if operands disagree on the
  /// fastest axis (plan.4).
  bool whole_tile_blocks = false;

  /// Whether kernels need the block's position in the pass's own index space.
  bool coordinates = false;

  /// Whether kernels need the index of each element in the pass's own index space. Axes are then
  /// ordered by strides as in other passes, but not merged (element_indices).
  bool indices = false;

  /// Whether the numbers of units decide the order in which results are combined, so that the cut
  /// into units must not depend on the budget.
  bool fixed_units = false;

  /// Set by reductions: the states that units are folded into, and the folded axes. Units are
  /// fixed.
  const fold_states* states = nullptr;
  dims folded = {};

  /// With `states` and one folded axis: each unit runs a second time, in `unit_step::scan`, with
  /// the states of all elements before it along that axis. No results are delivered.
  bool scans = false;

  /// With `states`: the plan of the units has one more operand before the states, the positions of
  /// elements among those that are folded into one result (position_layout).
  bool positions = false;

  /// If not -1: kernels get whole lanes along this axis. A block then consists of the lanes' first
  /// elements. Operands may have lanes of different lengths, but none of length 0.
  index_t lane_axis = -1;

  /// Set by passes whose body works on whole units, and whose operands may have halos: the extents
  /// of a unit, or no extents if the way chooses them. No budget changes such units, and the body
  /// finds the elements of a unit in `unit::operands`. With `coordinates`.
  std::optional<dims> unit_shape = std::nullopt;

  /// The bytes of scratch memory that each worker needs.
  std::size_t scratch_bytes = 0;

  /// How long the kernels take for an element, in additions of float32; 0: unknown.
  index_t additions = 0;

  /// Which mapped operands are streamed, see streams_if.
  streams_if streams = streams_if::larger_than_half_the_budget;

  /// Whether the body uses `unit::nontemporal_buffer`.
  bool can_store_nontemporally = false;

  /// Whether the operands' bytes count in the executor's statistics.
  bool counted = true;

  bool has_fixed_units() const noexcept { return fixed_units || states != nullptr; }
};

/// A limit that no number of elements reaches.
inline constexpr index_t any_number = index_t{1} << 62;

/// The most elements of a block, for a plan.
inline index_t block_elements_of(const pass_options& options) noexcept {
  return options.block_elements > 0 ? options.block_elements : any_number;
}

/// The shape of the index space of a pass over prepared operands. The axis of lanes has length 1,
/// because the pass visits the first element of each lane.
inline dims index_space(std::span<const loop_operand> operands, const pass_options& options) {
  dims shape = operands.empty() ? options.shape : operands[0].values.shape();
  if (options.lane_axis >= 0) shape[options.lane_axis] = 1;
  return shape;
}

/// Describes an operand of a pass, or a part of it, for a plan.
inline plan_operand plan_operand_of(const tensor& values, const pass_options& options) {
  const layout& all = values.layout();
  if (options.lane_axis < 0) return {all, values.item_bytes()};
  const index_t along = options.lane_axis;
  return {.layout = all.narrow(along, 0, 1),
          .item_bytes = values.item_bytes(),
          .lane_size = all.shape()[along],
          .lane_stride = all.strides()[along]};
}

/// The part of an operand that belongs to a box of the index space, with whole lanes.
inline region part_of(const tensor& values, region box, const pass_options& options) {
  if (options.lane_axis >= 0) box.shape[options.lane_axis] = values.shape()[options.lane_axis];
  return box;
}

}  // namespace shale::parallel
