#include "support/index_oracle.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace shale::test {

std::int64_t product(const index_list& shape) {
  std::int64_t count = 1;
  for (const auto extent : shape) count *= extent;
  return count;
}

index_oracle index_oracle::row_major(const index_list& shape) {
  index_oracle result{shape, {}};
  for (std::int64_t position = 0; position < product(shape); ++position)
    result.positions.push_back(position);
  return result;
}

index_oracle index_oracle::strided(const index_list& shape, const index_list& strides,
                                   std::int64_t offset) {
  index_oracle result{shape, {}};
  result.positions.reserve(static_cast<std::size_t>(product(shape)));
  for_each_index(shape, [&](const index_list& index) {
    std::int64_t position = offset;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) position += index[axis] * strides[axis];
    result.positions.push_back(position);
  });
  return result;
}

std::int64_t index_oracle::operator[](const index_list& index) const {
  std::int64_t position = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    position = position * shape[axis] + index[axis];
  return positions[static_cast<std::size_t>(position)];
}

index_oracle index_oracle::gathered(const index_list& new_shape,
                                    const std::function<index_list(index_list)>& source) const {
  index_oracle result{new_shape, {}};
  for_each_index(new_shape, [&](const index_list& index) {
    result.positions.push_back((*this)[source(index)]);
  });
  return result;
}

std::size_t index_oracle::axis_at(std::int64_t axis) const {
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(shape.size()) : axis);
}

index_oracle index_oracle::keeping(std::int64_t axis, const index_list& kept) const {
  const std::size_t a = axis_at(axis);
  index_list new_shape = shape;
  new_shape[a] = static_cast<std::int64_t>(kept.size());
  return gathered(new_shape, [&, a](index_list index) {
    index[a] = kept[static_cast<std::size_t>(index[a])];
    return index;
  });
}

index_oracle index_oracle::narrow(std::int64_t axis, std::int64_t start,
                                  std::int64_t length) const {
  index_list kept;
  for (std::int64_t i = 0; i < length; ++i) kept.push_back(start + i);
  return keeping(axis, kept);
}

index_oracle index_oracle::select(std::int64_t axis, std::int64_t position) const {
  const std::size_t a = axis_at(axis);
  if (position < 0) position += shape[a];
  index_list new_shape = shape;
  new_shape.erase(new_shape.begin() + static_cast<std::ptrdiff_t>(a));
  return gathered(new_shape, [a, position](index_list index) {
    index.insert(index.begin() + static_cast<std::ptrdiff_t>(a), position);
    return index;
  });
}

index_oracle index_oracle::sliced(std::int64_t axis, std::optional<std::int64_t> start,
                                  std::optional<std::int64_t> stop, std::int64_t step) const {
  const std::int64_t n = shape[axis_at(axis)];
  index_list kept;
  std::int64_t first = start.value_or(step > 0 ? 0 : n - 1);
  if (start && first < 0) first += n;
  std::int64_t end = stop.value_or(0);
  if (stop && end < 0) end += n;
  // A start beyond the axis begins at its end, not at the first reachable multiple of the step.
  if (step > 0 && first < 0) first = 0;
  if (step < 0 && first > n - 1) first = n - 1;
  for (std::int64_t position = first; position >= 0 && position < n; position += step) {
    if (stop && (step > 0 ? position >= end : position <= end)) break;
    kept.push_back(position);
  }
  return keeping(axis, kept);
}

index_oracle index_oracle::permuted(const index_list& axes) const {
  index_list new_shape;
  for (const auto axis : axes) new_shape.push_back(shape[axis_at(axis)]);
  return gathered(new_shape, [&](const index_list& index) {
    index_list source(index.size());
    for (std::size_t i = 0; i < axes.size(); ++i) source[axis_at(axes[i])] = index[i];
    return source;
  });
}

index_oracle index_oracle::swapaxes(std::int64_t a, std::int64_t b) const {
  index_list axes = all_axes();
  std::swap(axes[axis_at(a)], axes[axis_at(b)]);
  return permuted(axes);
}

index_oracle index_oracle::moveaxis(std::int64_t from, std::int64_t to) const {
  index_list axes;
  for (const auto axis : all_axes())
    if (axis != static_cast<std::int64_t>(axis_at(from))) axes.push_back(axis);
  axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(axis_at(to)),
              static_cast<std::int64_t>(axis_at(from)));
  return permuted(axes);
}

index_oracle index_oracle::reshaped(const index_list& new_shape) const {
  return {new_shape, positions};
}

index_oracle index_oracle::squeeze() const {
  index_list kept;
  for (const auto extent : shape)
    if (extent != 1) kept.push_back(extent);
  return reshaped(kept);
}

index_oracle index_oracle::squeeze(const index_list& axes) const {
  std::set<std::size_t> dropped;
  for (const auto axis : axes) dropped.insert(static_cast<std::size_t>(axis_at(axis)));
  index_list kept;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    if (!dropped.contains(axis)) kept.push_back(shape[axis]);
  return reshaped(kept);
}

index_oracle index_oracle::expand_dims(std::int64_t axis) const {
  if (axis < 0) axis += static_cast<std::int64_t>(shape.size()) + 1;
  index_list more = shape;
  more.insert(more.begin() + axis, 1);
  return reshaped(more);
}

index_oracle index_oracle::broadcast_to(const index_list& wanted) const {
  const std::size_t lead = wanted.size() - shape.size();
  index_list new_shape = wanted;
  for (std::size_t axis = lead; axis < wanted.size(); ++axis)
    if (wanted[axis] == -1) new_shape[axis] = shape[axis - lead];
  return gathered(new_shape, [&](const index_list& index) {
    index_list source(shape.size());
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      source[axis] = shape[axis] == 1 ? 0 : index[axis + lead];
    return source;
  });
}

index_oracle index_oracle::unfold(std::int64_t axis, std::int64_t size, std::int64_t step) const {
  const std::size_t a = axis_at(axis);
  std::int64_t windows = 0;
  while (windows * step + size <= shape[a]) ++windows;
  index_list new_shape = shape;
  new_shape[a] = windows;
  new_shape.push_back(size);
  return gathered(new_shape, [a, step](index_list index) {
    const std::int64_t within = index.back();
    index.pop_back();
    index[a] = index[a] * step + within;
    return index;
  });
}

index_oracle index_oracle::diagonal(std::int64_t offset, std::int64_t axis_a,
                                    std::int64_t axis_b) const {
  const std::size_t a = axis_at(axis_a), b = axis_at(axis_b);
  index_list rows;  // rows whose column lies inside
  for (std::int64_t row = 0; row < shape[a]; ++row)
    if (row + offset >= 0 && row + offset < shape[b]) rows.push_back(row);
  index_list new_shape;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    if (axis != a && axis != b) new_shape.push_back(shape[axis]);
  new_shape.push_back(static_cast<std::int64_t>(rows.size()));
  return gathered(new_shape, [&, a, b](const index_list& index) {
    index_list source;
    std::size_t next = 0;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const std::int64_t row = rows[static_cast<std::size_t>(index.back())];
      source.push_back(axis == a ? row : axis == b ? row + offset : index[next++]);
    }
    return source;
  });
}

index_oracle index_oracle::flip(const index_list& axes) const {
  return gathered(shape, [&](index_list index) {
    for (const auto axis : axes)
      index[axis_at(axis)] = shape[axis_at(axis)] - 1 - index[axis_at(axis)];
    return index;
  });
}

index_list index_oracle::all_axes() const {
  index_list axes;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    axes.push_back(static_cast<std::int64_t>(axis));
  return axes;
}

std::optional<index_list> index_oracle::strides() const {
  index_list result(shape.size(), 0);
  if (positions.empty()) return result;
  const std::int64_t origin = positions.front();
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 1) continue;
    index_list neighbour(shape.size(), 0);
    neighbour[axis] = 1;
    result[axis] = (*this)[neighbour] - origin;
  }
  if (strided(shape, result, origin).positions != positions) return std::nullopt;
  return result;
}

}  // namespace shale::test
