// Two layouts of one shape, walked together row by row: what copying and comparing share.
#pragma once

#include <cstddef>

#include "shale/tensor.hpp"

namespace shale::detail {

/// One axis of a walk; strides in bytes.
struct pair_axis {
  index_t extent;
  index_t first_stride;
  index_t second_stride;
};

/// The elements of two tensors of one shape and one item width, in the order that suits the first:
/// axes of length 1 dropped, reversed axes of the first walked backwards, largest stride of the
/// first outermost, neighbours merged where both allow. Pairs stay pairs; their order is free.
class strided_pair {
 public:
  strided_pair(const tensor& first, const tensor& second);

  bool empty() const noexcept { return empty_; }
  index_t rank() const noexcept { return rank_; }
  pair_axis& operator[](index_t axis) noexcept { return axes_[axis]; }

  /// The innermost axis; {1, 0, 0} for a single element.
  pair_axis inner() const noexcept { return rank_ > 0 ? axes_[rank_ - 1] : pair_axis{1, 0, 0}; }

  /// Calls `body(first, second)` at every combination of the outer `axes` axes; stops and answers
  /// false as soon as `body` does.
  template <class Body>
  bool for_each_outer(index_t axes, Body&& body) const {
    if (empty_) return true;
    index_t at[max_rank] = {};
    std::byte* first = first_;
    const std::byte* second = second_;
    for (;;) {
      if (!body(first, second)) return false;
      index_t axis = axes - 1;
      for (; axis >= 0; --axis) {
        first += axes_[axis].first_stride;
        second += axes_[axis].second_stride;
        if (++at[axis] < axes_[axis].extent) break;
        first -= axes_[axis].extent * axes_[axis].first_stride;
        second -= axes_[axis].extent * axes_[axis].second_stride;
        at[axis] = 0;
      }
      if (axis < 0) return true;
    }
  }

 private:
  bool empty_;
  index_t rank_ = 0;
  pair_axis axes_[max_rank];
  std::byte* first_;
  const std::byte* second_;
};

}  // namespace shale::detail
