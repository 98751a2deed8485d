#include "array/elements/chunk_places.hpp"

#include <algorithm>
#include <vector>

#include "core/allocating.hpp"

namespace shale::arrays {

using parallel::axis_map;

chunk_places::chunk_places(const axis_map& view)
    : start_(view.base),
      shape_(dims::filled(view.base.size(), 1)),
      step_(dims::filled(view.base.size(), 1)) {
  for (index_t i = 0; i < view.rank(); ++i) {
    const index_t axis = view.from[i];
    if (axis < 0) continue;
    shape_[axis] = view.shape[i];
    if (view.shape[i] > 1) step_[axis] = view.step[i];
    if (step_[axis] > 0) continue;
    start_[axis] += (view.shape[i] - 1) * step_[axis];
    step_[axis] = -step_[axis];
  }
}

chunk_places::chunk_places(const region& part)
    : start_(part.start), shape_(part.shape), step_(dims::filled(part.shape.size(), 1)) {}

axis_map chunk_places::map() const {
  axis_map map = axis_map::identity(shape_);
  map.base = start_;
  map.step = step_;
  return map;
}

dims chunk_places::pieces(const dims& chunk_shape) const {
  dims count = shape_;
  for (index_t axis = 0; axis < count.size(); ++axis) {
    const index_t extent = chunk_shape[axis];
    if (shape_[axis] == 0 || step_[axis] > extent) continue;  // each position has its own chunk
    const index_t last = start_[axis] + (shape_[axis] - 1) * step_[axis];
    count[axis] = last / extent - start_[axis] / extent + 1;
  }
  return count;
}

chunk_places::piece_range chunk_places::range_of(index_t axis, index_t piece, index_t count,
                                                 index_t chunk_extent) const {
  const index_t start = start_[axis];
  const index_t step = step_[axis];
  if (step > chunk_extent) return {(start + piece * step) / chunk_extent, piece, count};
  // The index of the first position at or after the beginning of a chunk.
  const auto index_at = [&](index_t chunk) {
    const index_t distance = chunk * chunk_extent - start;
    return distance <= 0 ? 0 : std::min(shape_[axis], ceil_div(distance, step));
  };
  const index_t chunk = start / chunk_extent + piece;
  const index_t first = index_at(chunk);
  return {chunk, first, index_at(chunk + count) - first};
}

region chunk_places::indices_of(const region& pieces, const dims& chunk_shape) const {
  region indices = pieces;
  for (index_t axis = 0; axis < shape_.size(); ++axis) {
    const piece_range range =
        range_of(axis, pieces.start[axis], pieces.shape[axis], chunk_shape[axis]);
    indices.start[axis] = range.first;
    indices.shape[axis] = range.length;
  }
  return indices;
}

dims chunk_places::chunk_of(const dims& piece, const dims& chunk_shape) const {
  dims chunk = piece;
  for (index_t axis = 0; axis < shape_.size(); ++axis)
    chunk[axis] = range_of(axis, piece[axis], 1, chunk_shape[axis]).chunk;
  return chunk;
}

chunk_places chunk_places::part(const region& indices) const {
  chunk_places part = *this;
  part.shape_ = indices.shape;
  for (index_t axis = 0; axis < shape_.size(); ++axis)
    part.start_[axis] += indices.start[axis] * step_[axis];
  return part;
}

expr in_array_order(const expr& values, const axis_map& view) {
  return detail::allocating([&] {
    std::vector<index_entry> entries;
    index_t next = 0;  // the axis of the array that comes next
    const auto insert_axes_before = [&](index_t axis) {
      for (; next < axis; ++next) entries.push_back(newaxis);
    };
    for (index_t i = 0; i < view.rank(); ++i) {
      const index_t axis = view.from[i];
      if (axis < 0) {
        entries.push_back(0);
        continue;
      }
      insert_axes_before(axis);
      const bool reversed = view.shape[i] > 1 && view.step[i] < 0;
      entries.push_back(reversed ? slice{.step = -1} : slice{});
      next = axis + 1;
    }
    insert_axes_before(view.base.size());
    return values.index(entries);
  });
}

}  // namespace shale::arrays
