// Describes a loop over N strided operands. It is made once per call, in four steps. The first
// three order the axes (strided_axes.hpp), the last one chooses tiles and blocks (cuts.hpp):
//   sort   drop axes of length 1; order the others by stride, the widest outermost; walk an axis
//          forwards if all operands walk it backwards
//   merge  replace two neighbouring axes by one if, for every operand, a step of the outer axis is
//          as long as the whole inner axis; contiguous operands end with a single axis
//   pair   if some operand is not fastest along the last axis (a transposed copy), move that
//          operand's fastest axis to the last but one place, and cut squares over these two axes
//   cut    divide the index space into tiles, the parts of work that threads claim, and each tile
//          into two-dimensional blocks, the parts of work that kernels get
//
// Invariants
//   plan.1  axes are sorted so that the last one is the fastest of the first operand that moves
//           along it; neighbouring axes are merged if every operand's strides allow it
//   plan.2  the plan's own cuts depend on shapes, item sizes and strides only: never on threads,
//           instruction set, memory budget or residency. A caller may give a tile shape instead
//   plan.3  the tiles partition the index space; a block never leaves its tile
//   plan.4  if operands disagree on the fastest axis, blocks are small squares over both axes, so
//           that each side moves whole cache lines. A caller whose kernel cuts blocks itself may
//           ask for whole tiles instead
//   plan.5  a tile whose size the plan chooses touches at most about 4 MiB of one operand (a square
//           of plan.4: 8 MiB) and 16 MiB of all operands. Each element counts with the 64 KiB
//           around it, which a page fault maps together: in a column of a large file every element
//           may lie in 64 KiB of its own, and a whole tile is resident at once
//
// The plan knows neither storage nor kernels. Positions are bytes from each operand's own origin.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "parallel/plan/cuts.hpp"
#include "parallel/plan/plan_operand.hpp"
#include "parallel/plan/strided_axes.hpp"
#include "shale/dims.hpp"
#include "shale/layout.hpp"
#include "shale/region.hpp"

namespace shale::parallel {

/// The position of a block in the plan's own index space.
struct block_position {
  const index_t* start;  ///< index of the block's first element: rank() entries
};

class plan {
 public:
  /// Throws   invalid_argument if there is no operand, or if their shapes differ; unsupported if
  ///          there are more than operands_max
  plan(std::span<const plan_operand> operands, const plan_options& options = {});

  int operands() const noexcept { return static_cast<int>(axes_.strides.size()); }
  index_t rank() const noexcept { return axes_.rank(); }

  /// Merged axes, outermost first; at least one axis. An empty index space has no tiles.
  const dims& shape() const noexcept { return axes_.shape; }

  /// Bytes between neighbours of an operand along each merged axis.
  const dims& strides_bytes(int operand) const noexcept { return axes_.strides[operand]; }

  /// Bytes from the operand's own base (position 0 of its layout) to the first element visited.
  index_t origin_bytes(int operand) const noexcept { return axes_.origins[operand]; }

  /// Bytes from the operand's base to the element at an index of the plan.
  index_t offset_bytes(int operand, const index_t* index) const noexcept {
    index_t offset = axes_.origins[operand];
    for (index_t axis = 0; axis < rank(); ++axis)
      offset += index[axis] * axes_.strides[operand][axis];
    return offset;
  }

  std::size_t item_bytes(int operand) const noexcept { return item_bytes_[operand]; }

  /// Only for plans that do not merge axes. own_axes()[a] is the operands' axis behind the plan's
  /// axis a, or -1 if no operand has that axis. directions()[a] is 1, or -1 if the plan walks the
  /// axis backwards.
  const dims& own_axes() const noexcept { return axes_.own_axes; }
  const dims& directions() const noexcept { return axes_.directions; }

  const dims& tile_shape() const noexcept { return cuts_.tile; }
  const dims& grid() const noexcept { return grid_; }
  index_t tile_count() const noexcept { return tile_count_; }
  index_t size() const noexcept { return size_; }

  /// Whether operands disagree on the fastest axis (plan.4).
  bool has_square_blocks() const noexcept { return square_blocks_; }

  /// The region that a tile covers.
  region tile(index_t number) const;

  /// The same loop with tiles of another shape.
  plan retiled(const dims& tile_shape) const;

  /// The same loop without a limit on the elements of a block. Squares (plan.4) are small.
  plan with_whole_blocks() const;

  /// Replaces the memory of an operand: its strides, and the bytes from its base to the first
  /// element visited.
  void move_operand(int operand, const dims& strides_bytes, index_t origin_bytes) {
    axes_.strides[operand] = strides_bytes;
    axes_.origins[operand] = origin_bytes;
  }

  /// The same for memory whose layout is given in the operands' own axes. The order of the plan's
  /// axes stays. For plans that do not merge axes.
  void move_operand(int operand, const layout& memory_layout);

  /// Whether the plan visits the operand against its storage order: another axis than the last one
  /// has the operand's smallest stride, and neighbours along the last axis lie in different cache
  /// lines.
  bool walks_against(int operand) const noexcept {
    return axes_.nearest_axis(static_cast<std::size_t>(operand)) >= 0;
  }

  /// The bytes that an operand touches in a box, from its base: the first and one past the last.
  std::pair<index_t, index_t> span_bytes(int operand, const region& box) const noexcept;

  /// The elements that an operand touches in a box, with its lanes. `first` is the lowest byte from
  /// the operand's base.
  struct touched_elements {
    dims shape;
    dims strides_bytes;
    index_t first;
  };
  touched_elements touched_by(int operand, const region& box) const;

  /// Calls `body(data, strides_bytes, inner, outer, position)` for every block of a box, with the
  /// parameters of `kernel` and a block_position. `bases[k]` is the address of position 0 of
  /// operand k's layout. The plan may have more operands than `bases`; `data` leaves the others
  /// out.
  template <class Body>
  void for_each_block(const region& box, std::span<std::byte* const> bases, Body&& body) const;

 private:
  void make_grid();

  struct lane {
    index_t size;
    index_t stride_bytes;
  };

  strided_axes axes_;
  std::vector<std::size_t> item_bytes_;
  std::vector<lane> lanes_;  // by operand number; empty if no operand has lanes
  index_t size_ = 0;
  bool square_blocks_ = false;
  cuts cuts_;
  dims grid_;
  index_t tile_count_ = 0;
};

template <class Body>
void plan::for_each_block(const region& box, std::span<std::byte* const> bases, Body&& body) const {
  const int count = static_cast<int>(bases.size());
  const index_t axes = rank();
  const index_t rows_axis = axes - 2;  // -1 for rank 1: a single row
  std::array<std::byte*, operands_max> row_base;
  std::array<std::byte*, operands_max> data;
  std::array<index_t, 2 * operands_max> strides;
  for (int k = 0; k < count; ++k) {
    strides[k] = axes_.strides[k][axes - 1];
    strides[count + k] = rows_axis >= 0 ? axes_.strides[k][rows_axis] : 0;
  }
  const index_t rows = rows_axis >= 0 ? box.shape[rows_axis] : 1;
  const index_t columns = box.shape[axes - 1];
  dims at = box.start;

  for (;;) {
    for (int k = 0; k < count; ++k) row_base[k] = bases[k] + offset_bytes(k, at.data());
    for (index_t row = 0; row < rows; row += cuts_.block_outer) {
      const index_t outer = std::min(cuts_.block_outer, rows - row);
      if (rows_axis >= 0) at[rows_axis] = box.start[rows_axis] + row;
      for (index_t column = 0; column < columns; column += cuts_.block_inner) {
        const index_t inner = std::min(cuts_.block_inner, columns - column);
        at[axes - 1] = box.start[axes - 1] + column;
        for (int k = 0; k < count; ++k)
          data[k] = row_base[k] + row * strides[count + k] + column * strides[k];
        body(data.data(), strides.data(), inner, outer, block_position{at.data()});
      }
    }
    at[axes - 1] = box.start[axes - 1];
    if (rows_axis >= 0) at[rows_axis] = box.start[rows_axis];
    index_t axis = axes - 3;
    for (; axis >= 0; --axis) {
      if (++at[axis] < box.start[axis] + box.shape[axis]) break;
      at[axis] = box.start[axis];
    }
    if (axis < 0) return;
  }
}

}  // namespace shale::parallel
