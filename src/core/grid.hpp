// Positions in a grid, numbered in row-major order, and the grid of tiles that cuts an index space.
#pragma once

#include <algorithm>

#include "shale/dims.hpp"
#include "shale/layout.hpp"
#include "shale/region.hpp"

namespace shale::detail {

/// Calls `visit(axis, coordinate)` for each of the first `axes` axes of a grid of `extents`, from
/// the last to the first. The coordinates are those of position `number`; 0 <= number < the product
/// of the extents of these axes.
template <class Visit>
void for_each_coordinate(index_t number, const dims& extents, index_t axes, Visit visit) {
  for (index_t axis = axes - 1; axis >= 0; --axis) {
    visit(axis, number % extents[axis]);
    number /= extents[axis];
  }
}

/// The index of position `number` of a grid of `extents`; 0 <= number < their product.
inline dims unravel(index_t number, const dims& extents) {
  dims index = dims::filled(extents.size(), 0);
  for_each_coordinate(number, extents, extents.size(),
                      [&](index_t axis, index_t position) { index[axis] = position; });
  return index;
}

/// The number of position `index` of a grid of `extents`.
inline index_t ravel(const dims& index, const dims& extents) {
  index_t number = 0;
  for (index_t axis = 0; axis < extents.size(); ++axis)
    number = number * extents[axis] + index[axis];
  return number;
}

/// The next index in row-major order; false after the last one, which becomes the first.
inline bool advance(dims& index, const dims& extents) {
  for (index_t axis = extents.size() - 1; axis >= 0; --axis) {
    if (++index[axis] < extents[axis]) return true;
    index[axis] = 0;
  }
  return false;
}

/// The number of tiles along each axis of an index space.
inline dims grid_of(const dims& shape, const dims& tile_shape) {
  dims grid = shape;
  for (index_t axis = 0; axis < shape.size(); ++axis)
    grid[axis] = ceil_div(shape[axis], tile_shape[axis]);
  return grid;
}

/// A box of tile indices.
struct tile_range {
  dims first;
  dims count;  ///< 0 along axes on which the region is empty

  index_t size() const noexcept { return element_count(count); }

  /// Tile `number` of the range, row-major, 0 <= number < size().
  dims at(index_t number) const noexcept {
    dims tile = unravel(number, count);
    for (index_t axis = 0; axis < tile.size(); ++axis) tile[axis] += first[axis];
    return tile;
  }
};

/// The tiles that share an element with `covered`, which lies inside the index space.
inline tile_range tiles_under(const region& covered, const dims& tile_shape) {
  tile_range range;
  for (index_t axis = 0; axis < covered.shape.size(); ++axis) {
    const index_t first = covered.start[axis] / tile_shape[axis];
    const index_t end = ceil_div(covered.start[axis] + covered.shape[axis], tile_shape[axis]);
    range.first.push_back(first);
    range.count.push_back(covered.shape[axis] == 0 ? 0 : end - first);
  }
  return range;
}

/// Calls `visit(index)` for the tiles that share an element with `covered`, in row-major order. No
/// axis of `covered` is empty.
template <class Visit>
void for_each_tile_under(const region& covered, const dims& tile_shape, Visit visit) {
  const tile_range range = tiles_under(covered, tile_shape);
  dims at = dims::filled(range.count.size(), 0);
  do {
    dims index;
    for (index_t axis = 0; axis < at.size(); ++axis) index.push_back(range.first[axis] + at[axis]);
    visit(index);
  } while (advance(at, range.count));
}

/// The common part of two boxes that overlap or touch.
inline region intersection(const region& a, const region& b) {
  region common{a.start, a.shape};
  for (index_t axis = 0; axis < a.shape.size(); ++axis) {
    common.start[axis] = std::max(a.start[axis], b.start[axis]);
    common.shape[axis] =
        std::min(a.start[axis] + a.shape[axis], b.start[axis] + b.shape[axis]) - common.start[axis];
  }
  return common;
}

/// A grid cuts `whole` into boxes, which follow each other in row-major order. Returns the elements
/// of those before `box`, which is one of them.
inline index_t elements_before(const region& whole, const region& box) {
  index_t before = 0;
  index_t across = 1;  // elements of the box along the axes so far
  for (index_t axis = 0; axis < whole.shape.size(); ++axis) {
    before = before * whole.shape[axis] + across * (box.start[axis] - whole.start[axis]);
    across *= box.shape[axis];
  }
  return before;
}

}  // namespace shale::detail
