// Describes a basic view (narrow, select, slice, permute, flip ...) by arithmetic on its axes,
// without a tensor. The engine uses it for views of tile sources, whose elements have no address
// yet.
#pragma once

#include <span>

#include "shale/dims.hpp"
#include "shale/slice.hpp"
#include "shale/tensor.hpp"

namespace shale::parallel {

/// The element of the view at index i has, along input axis a, the position
///   base[a] + the sum of step[r] * i[r] over the view axes r with from[r] == a.
/// At most one view axis moves along an input axis. A new or broadcast view axis has from[r] == -1.
/// The operations below can be combined freely. unfold, diagonal and reshape cannot be expressed:
/// they let two view axes move along one input axis, or one view axis along two.
struct axis_map {
  dims base;   // first position along each input axis
  dims shape;  // extent of each view axis
  dims from;   // input axis of each view axis, or -1
  dims step;   // positions between neighbours along each view axis; may be negative

  static axis_map identity(const dims& shape);

  index_t rank() const noexcept { return shape.size(); }

  axis_map narrow(index_t axis, index_t start, index_t length) const;
  axis_map select(index_t axis, index_t index) const;
  axis_map sliced(index_t axis, const slice& range) const;
  axis_map permute_dims(const dims& axes) const;
  axis_map expand_dims(index_t axis) const;
  axis_map squeeze(const dims& axes) const;
  axis_map broadcast_to(const dims& shape) const;
  axis_map flip(const dims& axes) const;
  axis_map index(std::span<const index_entry> entries) const;

  /// The composition: `inner` views the input, and this map views the result of `inner`.
  axis_map after(const axis_map& inner) const;

  /// The layout of this view of a tensor whose layout is `input`.
  layout applied_to(const layout& input) const;

  friend bool operator==(const axis_map& a, const axis_map& b) = default;
};

}  // namespace shale::parallel
