// The results of a rolling reduction as a tile source: a tile is computed when a pass loads it,
// from a part of the operand that overlaps those of its neighbours. So the operand may be anything
// that an expression reads, and larger than memory.
#pragma once

#include "ops/evaluation/compile.hpp"
#include "ops/evaluation/operand_parts.hpp"
#include "shale/tile_source.hpp"

namespace shale::ops {

class rolling_tiles final : public tile_source {
 public:
  /// `made` is a rolling reduction, and `input` its input, which reads no stages.
  rolling_tiles(const detail::stage& made, node_ref input);

  shale::dtype dtype() const noexcept override { return type_; }
  const dims& shape() const noexcept override { return shape_; }

  /// Along the axis, a tile has at least as many windows as a window has elements, if there are so
  /// many. So a load takes time in proportion to the tile, and all tiles together read each element
  /// of the operand at most twice. If the operand reads tile sources, tiles follow their grid.
  const dims& tile_shape() const noexcept override { return tile_shape_; }

  /// Evaluates a part of the operand on the executor of the call, and reduces its windows.
  /// Throws   as `eval`
  void load(const dims& tile, const tensor& values) const override;

  /// Returns 0: the evaluations of the operand's parts count the bytes that they read.
  std::uint64_t stored_bytes(const dims&) const override { return 0; }

 private:
  operand_parts operand_;
  reduction kind_;
  shale::dtype type_;
  index_t axis_;
  index_t width_;
  dims shape_;
  dims tile_shape_;
};

/// The leaf of a rolling reduction whose input reads the given results of stages.
node_ref make_rolling_leaf(const detail::stage& made, const staged_values& values);

}  // namespace shale::ops
