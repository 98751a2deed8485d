// The one description of a loop over N strided operands, made once per call.
//
// Invariants
//   plan.1  axes are sorted so that the last is the fastest of the first operand that cares; axes
//           that every operand steps through evenly are merged
//   plan.2  cuts depend on shapes, item sizes and strides only: never on threads, instruction set,
//           memory budget or residency
//   plan.3  the tiles partition the index space; a block never leaves its tile
//   plan.4  where operands disagree on the fastest axis, blocks are small squares over both, so
//           that each side moves whole cache lines
//   plan.5  tiles whose size the plan chooses touch about 4 MiB of an operand at most (squares of
//           plan.4: 8 MiB) and 16 MiB of all operands, counted in the 64 KiB around an element that
//           the kernel maps together: every element of a column of a large file may be alone in its
//           own, and a tile is in memory at once
//
// Knows neither storage nor kernels; positions are bytes from each operand's own origin.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "shale/dims.hpp"
#include "shale/layout.hpp"

namespace shale::parallel {

/// Most operands of one plan: apply needs 8, fused expressions more.
inline constexpr int max_operands = 64;

struct plan_operand {
  /// Broadcast to the common shape already.
  layout where;
  std::size_t item_bytes = 1;

  /// Whether this operand's strides take part in ordering the axes. The states of a reduction do
  /// not: the values decide how memory is walked.
  bool orders = true;
};

struct plan_options {
  /// Elements a tile aims at, whatever it then touches; 0: the plan chooses (plan.5).
  index_t tile_elements = 0;

  /// Most elements of a tile where the plan chooses.
  index_t elements_max = index_t{1} << 62;

  /// Most elements in the inner two-dimensional block.
  index_t block_elements = index_t{1} << 62;

  /// Keep logical axes apart and unflipped, so that block coordinates are those of the caller.
  bool keep_axes = false;

  /// With keep_axes: the tiles' extents, instead of what the plan would choose.
  std::optional<dims> tile_shape = std::nullopt;

  /// With an operand that does not order (a reduction's states): most elements along its
  /// own axes in a tile, so that partial states stay small.
  index_t state_elements = 4096;
};

/// Where a block lies in the plan's own index space.
struct block_position {
  const index_t* start;  ///< rank() entries; the last two are advanced block by block
};

class plan {
 public:
  /// Throws   invalid_argument unless all operands have one shape and there are 1 to max_operands
  plan(std::span<const plan_operand> operands, const plan_options& options = {});

  int operands() const noexcept { return static_cast<int>(strides_.size()); }
  index_t rank() const noexcept { return shape_.size(); }

  /// Merged axes, outermost first; at least one axis. An empty index space has no tiles.
  const dims& shape() const noexcept { return shape_; }

  /// Bytes between neighbours of operand `which` along each merged axis.
  const dims& strides_bytes(int which) const noexcept { return strides_[which]; }

  /// Bytes from the operand's own base (position 0 of its layout) to the first element visited.
  index_t origin_bytes(int which) const noexcept { return origins_[which]; }

  std::size_t item_bytes(int which) const noexcept { return items_[which]; }

  /// The caller's axis behind each of the plan's; only with keep_axes.
  const dims& logical_axes() const noexcept { return logical_axes_; }

  const dims& tile_shape() const noexcept { return tile_; }
  const dims& grid() const noexcept { return grid_; }
  index_t tile_count() const noexcept { return tile_count_; }
  index_t size() const noexcept { return size_; }

  /// Whether operands disagree on the fastest axis (plan.4).
  bool is_blocked() const noexcept { return blocked_; }

  /// Start and extent of a tile along every axis.
  struct box {
    dims start;
    dims shape;
  };
  box tile(index_t number) const;

  /// The bytes operand `which` touches in a box: first and one past the last, from its base.
  std::pair<index_t, index_t> span_bytes(int which, const box& where) const noexcept;

  /// Calls `body(data, strides_bytes, inner, outer, position)` for every block of a box, as
  /// `kernel` takes them; `bases[k]` is the address of position 0 of operand k's layout. Operands
  /// beyond `bases` shaped the plan but are not handed out.
  template <class Body>
  void for_each_block(const box& where, std::span<std::byte* const> bases, Body&& body) const;

 private:
  void sort_axes(std::span<const plan_operand> operands);
  void merge_axes();
  void cut(std::span<const plan_operand> operands, const plan_options& options);
  void choose_tile(std::span<const plan_operand> operands, index_t elements,
                   const plan_options& options);

  dims shape_;
  std::vector<dims> strides_;
  std::vector<index_t> origins_;
  std::vector<std::size_t> items_;
  dims logical_axes_;
  dims tile_;
  dims grid_;
  index_t size_ = 0;
  index_t tile_count_ = 0;
  index_t block_inner_ = 0;  // most elements of a block along the last axis
  index_t block_outer_ = 0;  // and along the one before
  bool blocked_ = false;
};

template <class Body>
void plan::for_each_block(const box& where, std::span<std::byte* const> bases, Body&& body) const {
  const int n = static_cast<int>(bases.size());
  const index_t r = rank();
  const index_t rows_axis = r - 2;  // -1 for rank 1: a single row
  std::array<std::byte*, max_operands> row_base;
  std::array<std::byte*, max_operands> data;
  std::array<index_t, 2 * max_operands> strides;
  for (int k = 0; k < n; ++k) {
    strides[k] = strides_[k][r - 1];
    strides[n + k] = rows_axis >= 0 ? strides_[k][rows_axis] : 0;
  }
  const index_t rows = rows_axis >= 0 ? where.shape[rows_axis] : 1;
  const index_t columns = where.shape[r - 1];
  dims at = where.start;

  for (;;) {
    for (int k = 0; k < n; ++k) {
      index_t position = origins_[k];
      for (index_t axis = 0; axis < r; ++axis) position += at[axis] * strides_[k][axis];
      row_base[k] = bases[k] + position;
    }
    for (index_t row = 0; row < rows; row += block_outer_) {
      const index_t outer = std::min(block_outer_, rows - row);
      if (rows_axis >= 0) at[rows_axis] = where.start[rows_axis] + row;
      for (index_t column = 0; column < columns; column += block_inner_) {
        const index_t inner = std::min(block_inner_, columns - column);
        at[r - 1] = where.start[r - 1] + column;
        for (int k = 0; k < n; ++k)
          data[k] = row_base[k] + row * strides[n + k] + column * strides[k];
        body(data.data(), strides.data(), inner, outer, block_position{at.data()});
      }
    }
    at[r - 1] = where.start[r - 1];
    if (rows_axis >= 0) at[rows_axis] = where.start[rows_axis];
    index_t axis = r - 3;
    for (; axis >= 0; --axis) {
      if (++at[axis] < where.start[axis] + where.shape[axis]) break;
      at[axis] = where.start[axis];
    }
    if (axis < 0) return;
  }
}

}  // namespace shale::parallel
