// Describes one unit of a pass: the part of its index space that one call of the kernels works on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "parallel/operands/loop_operand.hpp"
#include "parallel/plan/plan.hpp"

namespace shale::parallel {

/// The step of a unit in a pass with states. In a scan, a unit may do both steps, one after the
/// other.
enum class unit_step : std::uint8_t {
  fold,  ///< folds its elements into the states
  scan,  ///< writes the results, beginning with the states
};

/// The data of one unit. Kernels reach it through for_each_block.
struct unit {
  index_t number;
  int worker;

  /// The unit covers `box` of the plan `over`, or the whole plan if `box` is null.
  const plan& over;
  const region* box;

  std::span<std::byte* const> bases;  // by operand: the address of position 0 of its layout
  std::byte* scratch;                 // the worker's scratch memory

  /// If not null: outputs should be stored past the cache, through this buffer of
  /// `nontemporal_buffer_bytes`. The results are the same either way.
  std::byte* nontemporal_buffer = nullptr;

  /// Set by passes with coordinates or indices: the start of `over` in the pass's index space. Null
  /// if `over` covers the whole space.
  const dims* origin = nullptr;

  /// Set if units have plans of their own: the elements of this unit alone, by operand. If the
  /// operand has a halo, they are a view of the box that also holds the halo (extents_around).
  std::span<const loop_operand> operands = {};

  /// Set by passes with states.
  unit_step step = unit_step::fold;
  std::byte* states = nullptr;  // the unit's own
  index_t results = 0;          // results that the unit contributes to
  dims state_strides = {};      // states between neighbours, by axis of `over`
  dims state_start = {};  // the index in `over` of the element that folds into the first state

  /// The number of the state of the element at a position.
  index_t state_at(const block_position& position) const noexcept {
    index_t state = 0;
    for (index_t axis = 0; axis < over.rank(); ++axis)
      state += (position.start[axis] - state_start[axis]) * state_strides[axis];
    return state;
  }

  /// Calls `body(data, strides_bytes, inner, outer, position)`, as plan::for_each_block does.
  template <class Body>
  void for_each_block(Body&& body) const {
    for_each_block_of(over, body);
  }

  /// The same for the blocks of a plan that differs from `over` in its blocks alone.
  template <class Body>
  void for_each_block_of(const plan& blocks, Body&& body) const {
    if (box) return blocks.for_each_block(*box, bases, body);
    for (index_t tile = 0; tile < blocks.tile_count(); ++tile)
      blocks.for_each_block(blocks.tile(tile), bases, body);
  }
};

/// The caller's function that works on a unit.
struct unit_body {
  void (*run)(void* context, const unit&);
  void* context;
};

}  // namespace shale::parallel
