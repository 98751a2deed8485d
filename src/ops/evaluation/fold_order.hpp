// Says in which order a pass folds values, as far as that depends on the values that it computes.
//
// The bits of a sum depend on the order of its additions, and so on the cuts of the pass into units
// and blocks, and on the order of axes. These follow from the layouts of all operands of the pass.
// A reduction shares a pass with others only if it has the same order there as alone: then its bits
// do not depend on what else is computed.
#pragma once

#include <cstddef>
#include <vector>

#include "ops/evaluation/compile.hpp"

namespace shale::ops {

/// The layout of an operand, as far as it decides the order of a pass. Of a tensor it has the
/// strides in bytes, and of a view of a tile source the map and the tiles that it touches.
///
/// A unit whose elements lie in one tile is folded inside it, with the tile's strides, and others
/// are gathered first. Which of both it is follows from where the view lies between the edges of
/// tiles; the strides follow from the extents of the tile, which is cut at the edge of the source.
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

/// The order in which a pass folds. Operands with the layout of an earlier one are left out,
/// because they change nothing but the size of tiles.
struct fold_order {
  std::vector<operand_order> operands;
  dims tile;               ///< the shape of units; empty if the tiles of a source decide it
  bool generates = false;  ///< whether values are computed from coordinates, which keeps axes

  friend bool operator==(const fold_order&, const fold_order&) = default;
};

/// A pass that folds values along `axes` of `shape`, as far as it decides bits. None of its
/// reductions reads positions.
class fold_pass {
 public:
  fold_pass(const dims& shape, const dims& axes) : shape_(shape), axes_(axes) {}

  /// Adds the nodes of values, as `post_order` gives them, without those that the pass has.
  /// Cost     O(nodes * operands), and a plan
  /// Throws   unsupported (more leaves than a plan has operands)
  void add(const std::vector<node_ref>& nodes, const staged_values& staged);

  const fold_order& order() const noexcept { return order_; }

  /// The most steps that the tape has, and the bytes of the widest value that a step computes.
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
