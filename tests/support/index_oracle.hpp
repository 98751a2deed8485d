// An oracle for views that works with lists of positions and shares no code with `layout`.
//
// A view is its shape and, for every element in row-major order, the element's position in the
// storage. Each operation builds the new list by explicit loops over indices.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace shale::test {

using index_list = std::vector<std::int64_t>;

std::int64_t product(const index_list& shape);

/// Calls `body` with every index of `shape`, in row-major order; once for rank 0.
template <class Body>
void for_each_index(const index_list& shape, Body&& body) {
  if (product(shape) == 0) return;
  index_list index(shape.size(), 0);
  for (;;) {
    body(static_cast<const index_list&>(index));
    std::size_t axis = shape.size();
    while (axis > 0 && ++index[axis - 1] == shape[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

struct index_oracle {
  index_list shape;
  index_list positions;

  /// A row-major view of the positions 0, 1, …
  static index_oracle row_major(const index_list& shape);

  /// `positions[k]` = offset + sum of index * stride.
  static index_oracle strided(const index_list& shape, const index_list& strides,
                              std::int64_t offset);

  std::int64_t operator[](const index_list& index) const;

  /// The view of `new_shape` whose element at `index` is this one's at `source(index)`.
  index_oracle gathered(const index_list& new_shape,
                        const std::function<index_list(index_list)>& source) const;

  std::size_t axis_at(std::int64_t axis) const;

  /// Keeps the positions `kept` of one axis, in that order.
  index_oracle keeping(std::int64_t axis, const index_list& kept) const;

  index_oracle narrow(std::int64_t axis, std::int64_t start, std::int64_t length) const;

  index_oracle select(std::int64_t axis, std::int64_t position) const;

  /// Python's slice: tests for every position whether the slice reaches it.
  index_oracle sliced(std::int64_t axis, std::optional<std::int64_t> start,
                      std::optional<std::int64_t> stop, std::int64_t step) const;

  /// Axis i of the result is axis axes[i] of this.
  index_oracle permuted(const index_list& axes) const;

  index_oracle swapaxes(std::int64_t a, std::int64_t b) const;

  index_oracle moveaxis(std::int64_t from, std::int64_t to) const;

  /// The same list with another shape, as `view` and `reshape` give it.
  index_oracle reshaped(const index_list& new_shape) const;

  index_oracle squeeze() const;

  index_oracle squeeze(const index_list& axes) const;

  index_oracle expand_dims(std::int64_t axis) const;

  /// Expands to a shape: axes are aligned right, and axes of extent 1 are repeated.
  index_oracle broadcast_to(const index_list& wanted) const;

  index_oracle unfold(std::int64_t axis, std::int64_t size, std::int64_t step) const;

  index_oracle diagonal(std::int64_t offset, std::int64_t axis_a, std::int64_t axis_b) const;

  index_oracle flip(const index_list& axes) const;

  index_list all_axes() const;

  /// Strides that give the position of every element, if such strides exist. They are found from
  /// the first two elements of each axis and then checked for every element. Axes with one position
  /// get 0.
  std::optional<index_list> strides() const;
};

}  // namespace shale::test
