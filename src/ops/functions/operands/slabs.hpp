// Slabs: parts of an index space that follow one another in row-major order. Functions that
// evaluate at once work through operands larger than memory slab by slab.
#pragma once

#include <algorithm>
#include <variant>

#include "core/grid.hpp"
#include "ops/functions/operands/held_operand.hpp"
#include "ops/graph/views.hpp"
#include "parallel/mapped/mapped_bytes.hpp"
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
  return expr_of(make_part(node_of(whole), box));
}

/// The elements of a part of an operand, as `held_contiguous`. Afterwards, the pages of mapped
/// elements leave the memory of this process, because those of all parts together could exceed the
/// budget.
/// Throws   as `eval`
inline tensor held_part(const expr& part) {
  const tensor held = held_contiguous(part);
  for (const detail::node_ref& value : post_order(node_of(part)))
    if (const auto* leaf = std::get_if<detail::tensor_leaf>(&value->content);
        leaf != nullptr && detail::is_mapped(leaf->values.storage()))
      leaf->values.storage().evict(parallel::span_of(leaf->values));
  return held;
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
