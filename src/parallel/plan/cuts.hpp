// Chooses how a plan's index space is cut: the shape of its tiles, which threads claim, and the
// limits of the two-dimensional blocks inside a tile, which kernels get. The choice depends on
// shapes, item sizes, strides and `plan_options` only (plan.2).
#pragma once

#include <span>

#include "parallel/plan/plan_operand.hpp"
#include "parallel/plan/strided_axes.hpp"

namespace shale::parallel {

struct cuts {
  dims tile;              ///< extents of a tile
  index_t block_inner{};  ///< the most elements of a block along the last axis
  index_t block_outer{};  ///< the most elements of a block along the last axis but one

  /// Cuts the tiles into blocks of at most so many elements: into small squares (plan.4), or into
  /// rows as long as possible.
  void cut_blocks(index_t elements_max, bool small_squares);
};

/// Cuts an index space of `size` elements. `squares`: operands disagree on the fastest axis, and
/// the last two axes are cut into squares (plan.4).
cuts choose_cuts(const strided_axes& axes, index_t size, bool squares,
                 std::span<const plan_operand> operands, const plan_options& options);

}  // namespace shale::parallel
