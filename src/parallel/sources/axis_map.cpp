#include "parallel/sources/axis_map.hpp"

#include <algorithm>
#include <string>

#include "shale/error.hpp"
#include "shale/layout.hpp"

namespace shale::parallel {

axis_map axis_map::identity(const dims& shape) {
  axis_map map;
  map.base = dims::filled(shape.size(), 0);
  map.shape = shape;
  map.step = dims::filled(shape.size(), 1);
  for (index_t axis = 0; axis < shape.size(); ++axis) map.from.push_back(axis);
  return map;
}

axis_map axis_map::narrow(index_t axis, index_t start, index_t length) const {
  axis = normalize_axis(axis, rank());
  const index_t extent = shape[axis];
  const index_t first = start < 0 ? start + extent : start;
  if (first < 0 || first > extent || length < 0 || length > extent - first)
    throw error(
        errc::invalid_argument, "narrow: range outside the axis",
        {"axis " + std::to_string(axis) + " has " + std::to_string(extent) + " positions, wanted " +
         std::to_string(length) + " from " + std::to_string(start)});
  axis_map view = *this;
  if (from[axis] >= 0) view.base[from[axis]] += first * step[axis];
  view.shape[axis] = length;
  return view;
}

axis_map axis_map::select(index_t axis, index_t index) const {
  axis = normalize_axis(axis, rank());
  const index_t at = index < 0 ? index + shape[axis] : index;
  if (at < 0 || at >= shape[axis])
    throw error(errc::invalid_argument, "select: index outside the axis",
                {"axis " + std::to_string(axis) + " has " + std::to_string(shape[axis]) +
                 " positions, got index " + std::to_string(index)});
  axis_map view = narrow(axis, at, 1);
  view.shape.erase(axis);
  view.from.erase(axis);
  view.step.erase(axis);
  return view;
}

axis_map axis_map::sliced(index_t axis, const slice& range) const {
  axis = normalize_axis(axis, rank());
  const slice_range positions = resolve(range, shape[axis]);
  axis_map view = *this;
  if (from[axis] >= 0 && positions.length > 0)
    view.base[from[axis]] += positions.start * step[axis];
  // The step is not used if there is one position. It may be huge, so that the product overflows.
  if (positions.length > 1) view.step[axis] *= positions.step;
  view.shape[axis] = positions.length;
  return view;
}

axis_map axis_map::permute_dims(const dims& axes) const {
  if (axes.size() != rank())
    throw error(errc::invalid_argument, "permute_dims needs one entry for each axis",
                {"got " + to_string(axes) + " for shape " + to_string(shape)});
  axis_map view;
  view.base = base;
  dims seen = dims::filled(rank(), 0);
  for (const index_t entry : axes) {
    const index_t axis = normalize_axis(entry, rank());
    if (seen[axis]++)
      throw error(errc::invalid_argument, "permute_dims: an axis is named twice",
                  {"got " + to_string(axes)});
    view.shape.push_back(shape[axis]);
    view.from.push_back(from[axis]);
    view.step.push_back(step[axis]);
  }
  return view;
}

axis_map axis_map::expand_dims(index_t axis) const {
  axis = normalize_axis(axis, rank() + 1);
  axis_map view = *this;
  view.shape.insert(axis, 1);
  view.from.insert(axis, -1);
  view.step.insert(axis, 0);
  return view;
}

axis_map axis_map::squeeze(const dims& axes) const {
  static_cast<void>(layout(shape).squeeze(axes));  // refuses what cannot be squeezed
  dims dropped = dims::filled(rank(), 0);
  for (const index_t axis : axes) dropped[normalize_axis(axis, rank())] = 1;
  axis_map result = *this;
  for (index_t axis = rank() - 1; axis >= 0; --axis)
    if (dropped[axis] != 0) result = result.select(axis, 0);
  return result;
}

axis_map axis_map::broadcast_to(const dims& wanted) const {
  if (wanted.size() < rank())
    throw error(errc::invalid_argument, "broadcast_to: the shape has fewer axes than the value",
                {"got shape " + to_string(wanted) + " for a value of shape " + to_string(shape)});
  const index_t added = wanted.size() - rank();
  axis_map view;
  view.base = base;
  for (index_t axis = 0; axis < wanted.size(); ++axis) {
    const index_t extent = axis < added ? 1 : shape[axis - added];
    const index_t target = wanted[axis] == -1 && axis >= added ? extent : wanted[axis];
    if (target < 0 || (extent != target && extent != 1))
      throw error(errc::invalid_argument, "broadcast_to: only axes of length 1 can be repeated",
                  {"axis " + std::to_string(axis) + ": got shape " + to_string(wanted) +
                   " for a value of shape " + to_string(shape)});
    const bool repeated = axis < added || (extent == 1 && target != 1);
    view.shape.push_back(target);
    view.from.push_back(repeated ? -1 : from[axis - added]);
    view.step.push_back(repeated ? 0 : step[axis - added]);
  }
  return view;
}

axis_map axis_map::flip(const dims& axes) const {
  axis_map view = *this;
  dims seen = dims::filled(rank(), 0);
  for (const index_t entry : axes) {
    const index_t axis = normalize_axis(entry, rank());
    if (seen[axis]++)
      throw error(errc::invalid_argument, "flip: an axis is named twice",
                  {"got " + to_string(axes)});
    view = view.sliced(axis, {.step = -1});
  }
  return view;
}

axis_map axis_map::index(std::span<const index_entry> entries) const {
  using kind = index_entry_kind;
  index_t used = 0;
  int ellipses = 0;
  for (const auto& entry : entries) {
    if (entry.kind() == kind::position || entry.kind() == kind::range) ++used;
    if (entry.kind() == kind::ellipsis) ++ellipses;
  }
  if (used > rank() || ellipses > 1)
    throw error(errc::invalid_argument,
                ellipses > 1 ? "index: more than one ellipsis" : "index: more entries than axes",
                {"got " + std::to_string(used) + " entries for shape " + to_string(shape)});
  // New axes are inserted last. If they were inserted before other axes are dropped, the rank could
  // exceed its maximum for a while.
  axis_map view = *this;
  index_t axis = 0;
  dims new_axes;
  for (const auto& entry : entries) {
    switch (entry.kind()) {
      case kind::position:
        view = view.select(axis, entry.position());
        break;
      case kind::range:
        view = view.sliced(axis++, entry.slice());
        break;
      case kind::new_axis:
        new_axes.push_back(axis + new_axes.size());
        break;
      case kind::ellipsis:
        axis += rank() - used;
        break;
    }
  }
  for (const index_t added : new_axes) view = view.expand_dims(added);
  return view;
}

axis_map axis_map::after(const axis_map& inner) const {
  axis_map view;
  view.base = inner.base;
  view.shape = shape;
  for (index_t axis = 0; axis < inner.rank(); ++axis)
    if (inner.from[axis] >= 0) view.base[inner.from[axis]] += base[axis] * inner.step[axis];
  for (index_t axis = 0; axis < rank(); ++axis) {
    const index_t middle = from[axis];
    const index_t input = middle >= 0 ? inner.from[middle] : -1;
    view.from.push_back(input);
    view.step.push_back(input >= 0 ? step[axis] * inner.step[middle] : 0);
  }
  return view;
}

layout axis_map::applied_to(const layout& input) const {
  index_t offset = input.offset();
  if (std::find(shape.begin(), shape.end(), 0) == shape.end())
    for (index_t axis = 0; axis < base.size(); ++axis) offset += base[axis] * input.strides()[axis];
  dims strides;
  for (index_t axis = 0; axis < rank(); ++axis)
    strides.push_back(from[axis] >= 0 ? step[axis] * input.strides()[from[axis]] : 0);
  return layout(shape, strides, offset);
}

}  // namespace shale::parallel
