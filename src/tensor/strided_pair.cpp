#include "tensor/strided_pair.hpp"

#include <algorithm>
#include <cassert>

namespace shale::detail {

strided_pair::strided_pair(const tensor& first, const tensor& second)
    : empty_(first.size() == 0),
      first_(const_cast<std::byte*>(first.data())),
      second_(second.data()) {
  assert(first.shape() == second.shape() && first.item_bytes() == second.item_bytes());
  if (empty_) return;
  // Each step keeps the set of pairs and only changes their order. The steps reverse the axes that
  // run backwards in the first tensor and sort the axes by the first tensor's strides. Then they
  // merge two neighbouring axes if, in both tensors, one step along the outer axis equals the whole
  // extent of the inner one.
  const auto item = static_cast<index_t>(first.item_bytes());
  for (index_t axis = 0; axis < first.rank(); ++axis) {
    pair_axis current{first.shape()[axis], first.strides()[axis] * item,
                      second.strides()[axis] * item};
    if (current.extent == 1) continue;
    if (current.first_stride < 0) {
      first_ += (current.extent - 1) * current.first_stride;
      second_ += (current.extent - 1) * current.second_stride;
      current.first_stride = -current.first_stride;
      current.second_stride = -current.second_stride;
    }
    axes_[rank_++] = current;
  }
  std::stable_sort(axes_, axes_ + rank_, [](const pair_axis& a, const pair_axis& b) {
    return a.first_stride > b.first_stride;
  });
  index_t kept = 0;
  for (index_t axis = 0; axis < rank_; ++axis) {
    const pair_axis& inner = axes_[axis];
    if (kept > 0) {
      pair_axis& outer = axes_[kept - 1];
      if (outer.first_stride == inner.extent * inner.first_stride &&
          outer.second_stride == inner.extent * inner.second_stride) {
        outer = {outer.extent * inner.extent, inner.first_stride, inner.second_stride};
        continue;
      }
    }
    axes_[kept++] = inner;
  }
  rank_ = kept;
}

}  // namespace shale::detail
