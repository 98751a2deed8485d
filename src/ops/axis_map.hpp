// Basic views as plain arithmetic: how the axes of a view walk the axes of what it views.
#pragma once

#include <span>

#include "shale/dims.hpp"
#include "shale/slice.hpp"
#include "shale/tensor.hpp"

namespace shale::ops {

/// Position along input axis a of the element at index i of the view:
///   base[a] + the sum over view axes r with from[r] == a of step[r] * i[r]
/// Every input axis is walked by at most one view axis; from[r] == -1 where a view axis is new or
/// broadcast. Closed under narrowing, selecting, slicing, permuting, inserting, dropping,
/// broadcasting and flipping; not under unfold, diagonal and reshape.
struct axis_map {
  dims base;   // one entry for each input axis
  dims shape;  // the view's, like the next two
  dims from;
  dims step;

  static axis_map identity(const dims& shape);

  index_t rank() const noexcept { return shape.size(); }

  axis_map narrow(index_t axis, index_t start, index_t length) const;
  axis_map select(index_t axis, index_t index) const;
  axis_map sliced(index_t axis, const slice& which) const;
  axis_map permute_dims(const dims& axes) const;
  axis_map unsqueeze(index_t axis) const;
  axis_map squeeze(index_t axis) const;
  axis_map expand(const dims& shape) const;
  axis_map flip(const dims& axes) const;
  axis_map index(std::span<const index_entry> entries) const;

  /// This view of another view: `inner` maps the input, this maps `inner`'s result.
  axis_map after(const axis_map& inner) const;

  /// The layout of this view of something laid out as `input`.
  layout applied_to(const layout& input) const;
};

}  // namespace shale::ops
