// Iterates over two layouts of one shape together, row by row; copying and comparing use it.
#pragma once

#include <cstddef>

#include "shale/tensor.hpp"

namespace shale::detail {

/// One axis of two tensors. Strides are in bytes.
struct pair_axis {
  index_t extent;
  index_t first_stride;
  index_t second_stride;
};

/// The pairs of elements with equal indices in two tensors of one shape and one item width. The
/// order of the pairs is chosen for the first tensor: axes of length 1 are dropped, its reversed
/// axes are walked backwards, its largest stride is outermost, and neighbouring axes are merged if
/// the strides of both tensors allow it.
class strided_pair {
 public:
  strided_pair(const tensor& first, const tensor& second);

  bool empty() const noexcept { return empty_; }
  index_t rank() const noexcept { return rank_; }
  pair_axis& operator[](index_t axis) noexcept { return axes_[axis]; }

  /// The innermost axis; {1, 0, 0} for a single element.
  pair_axis inner() const noexcept { return rank_ > 0 ? axes_[rank_ - 1] : pair_axis{1, 0, 0}; }

  /// Calls `body(first, second)` at every combination of the outer `axes` axes. Stops and returns
  /// false as soon as `body` returns false.
  template <class Body>
  bool for_each_outer(index_t axes, Body&& body) const {
    if (empty_) return true;
    index_t index[rank_max] = {};
    std::byte* first = first_;
    const std::byte* second = second_;
    for (;;) {
      if (!body(first, second)) return false;
      index_t axis = axes - 1;
      for (; axis >= 0; --axis) {
        first += axes_[axis].first_stride;
        second += axes_[axis].second_stride;
        if (++index[axis] < axes_[axis].extent) break;
        first -= axes_[axis].extent * axes_[axis].first_stride;
        second -= axes_[axis].extent * axes_[axis].second_stride;
        index[axis] = 0;
      }
      if (axis < 0) return true;
    }
  }

 private:
  bool empty_;
  index_t rank_ = 0;
  pair_axis axes_[rank_max];
  std::byte* first_;
  const std::byte* second_;
};

}  // namespace shale::detail
