// Describes the order in which a pass folds values, to the extent that its operands decide that
// order.
//
// The bits of a sum depend on the order of its additions. That order follows from the cuts of the
// pass into units and blocks, and from the order of axes. These in turn follow from the layouts of
// all operands of the pass. A reduction shares a pass with others only if the pass folds it in the
// same order as a pass of its own. So its bits do not depend on the other values of the pass.
#pragma once

#include <cstddef>
#include <vector>

#include "ops/evaluation/compile.hpp"

namespace shale::ops {

/// The layout of an operand, as far as it decides the order of a pass. For a tensor, these are the
/// strides in bytes. For a view of a tile source, they are the map and the tiles that it touches.
///
/// If all elements of a unit lie in one tile, the unit is folded there, with the strides of the
/// tile. Otherwise its elements are gathered first. The place of the view between the edges of
/// tiles decides between the two cases. The strides of a tile follow from its extents: a tile at
/// the edge of the source is cut off there.
struct operand_order {
  std::size_t item_bytes = 0;
  dims strides_bytes = {};
  dims from = {};
  dims step = {};
  dims tile_shape = {};
  dims first = {};  ///< where the view begins in a tile; 0 along axes on which it has one position
  dims last_tile = {};  ///< the extents of the tiles that hold the view's last positions

  friend bool operator==(const operand_order&, const operand_order&) = default;
};

/// The order in which a pass folds. An operand with the layout of an earlier operand is left out,
/// because it changes only the size of tiles.
struct fold_order {
  std::vector<operand_order> operands;
  dims tile;               ///< the shape of units; empty if the tiles of a source decide it
  bool generates = false;  ///< whether values are computed from coordinates, which keeps axes

  friend bool operator==(const fold_order&, const fold_order&) = default;
};

/// The facts about a pass that decide the bits of its results. The pass folds values along `axes`
/// of `shape`. Its reductions do not read positions.
class fold_pass {
 public:
  fold_pass(const dims& shape, const dims& axes) : shape_(shape), axes_(axes) {}

  /// Adds nodes of values in the order of `post_order`. They are not in the pass yet.
  /// Cost     O(nodes * operands), and a plan
  /// Throws   unsupported (more leaves than a plan has operands)
  void add(const std::vector<node_ref>& nodes, const staged_values& staged);

  const fold_order& order() const noexcept { return order_; }

  /// An upper limit for the steps of the tape, and the bytes of the widest value of a step.
  std::size_t steps() const noexcept { return steps_; }
  std::size_t item_bytes() const noexcept { return item_bytes_; }

 private:
  void add_leaf(pass_operand leaf);
  void choose_units();

  dims shape_;
  dims axes_;
  fold_order order_;
  std::vector<pass_operand> leaves_;
  std::size_t steps_ = 0;
  std::size_t item_bytes_ = 0;
};

/// The pass that folds `values`, in their order.
fold_pass pass_of(const std::vector<node_ref>& values, const dims& axes,
                  const staged_values& staged);

}  // namespace shale::ops
