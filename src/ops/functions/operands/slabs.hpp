// Slabs: parts of an index space that follow one another in row-major order. Functions that evaluate
// at once work through operands larger than memory slab by slab.
#pragma once

#include <algorithm>

#include "core/grid.hpp"
#include "shale/expr.hpp"
#include "shale/region.hpp"

namespace shale::ops {

/// The shape of slabs that have at most `elements` elements, but at least one.
inline dims slab_shape(const dims& shape, index_t elements) {
  dims slab = dims::filled(shape.size(), 1);
  index_t left = std::max<index_t>(elements, 1);
  for (index_t axis = shape.size() - 1; axis >= 0; --axis) {
    slab[axis] = std::min(shape[axis], left);
    if (slab[axis] < shape[axis]) break;
    left /= std::max<index_t>(slab[axis], 1);
  }
  return slab;
}

/// The elements of `whole` in a box.
inline expr part_of(const expr& whole, const region& box) {
  expr part = whole;
  for (index_t axis = 0; axis < whole.rank(); ++axis)
    if (box.shape[axis] != whole.shape(axis))
      part = part.narrow(axis, box.start[axis], box.shape[axis]);
  return part;
}

/// Calls `body(box)` for all slabs of an index space that is not empty, in row-major order.
template <class Body>
void for_each_slab_of(const dims& shape, const dims& slab, const Body& body) {
  const dims grid = shale::detail::grid_of(shape, slab);
  dims at = dims::filled(grid.size(), 0);
  do {
    region box{at, slab};
    for (index_t axis = 0; axis < at.size(); ++axis) {
      box.start[axis] *= slab[axis];
      box.shape[axis] = std::min(slab[axis], shape[axis] - box.start[axis]);
    }
    body(box);
  } while (shale::detail::advance(at, grid));
}

}  // namespace shale::ops
