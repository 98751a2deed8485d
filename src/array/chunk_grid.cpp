#include "array/chunk_grid.hpp"

#include <algorithm>

namespace shale::arrays {

index_t tile_range::size() const noexcept {
  index_t product = 1;
  for (const index_t each : count) product *= each;
  return product;
}

dims tile_range::at(index_t number) const noexcept {
  dims tile = first;
  for (index_t axis = count.size() - 1; axis >= 0; --axis) {
    tile[axis] += number % count[axis];
    number /= count[axis];
  }
  return tile;
}

tile_range tiles_touched(const region& where, const dims& tile_shape) {
  tile_range range;
  for (index_t axis = 0; axis < tile_shape.size(); ++axis) {
    const index_t first = where.start[axis] / tile_shape[axis];
    const index_t end = ceil_div(where.start[axis] + where.shape[axis], tile_shape[axis]);
    range.first.push_back(first);
    range.count.push_back(where.shape[axis] == 0 ? 0 : end - first);
  }
  return range;
}

region intersection(const region& a, const region& b) {
  region common{a.start, a.shape};
  for (index_t axis = 0; axis < a.shape.size(); ++axis) {
    common.start[axis] = std::max(a.start[axis], b.start[axis]);
    common.shape[axis] =
        std::min(a.start[axis] + a.shape[axis], b.start[axis] + b.shape[axis]) - common.start[axis];
  }
  return common;
}

tensor part(const tensor& values, const region& piece, const dims& origin) {
  tensor view = values;
  for (index_t axis = 0; axis < piece.shape.size(); ++axis)
    view = view.narrow(axis, piece.start[axis] - origin[axis], piece.shape[axis]);
  return view;
}

}  // namespace shale::arrays
