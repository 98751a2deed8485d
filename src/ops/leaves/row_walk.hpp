// Helps generators: the walk of a block over the axes of their input, copies of short runs, and the
// choice of a generator by the width of its elements.
#pragma once

#include <cstring>
#include <memory>

#include "ops/passes/tape.hpp"
#include "parallel/sources/axis_map.hpp"
#include "shale/tensor.hpp"

namespace shale::ops {

/// The walk of a block over the input axes: the position of its first element along each input
/// axis, and the steps to the next element of a row and to the next row. An axis map lets a view
/// axis move along at most one input axis, so each step changes at most one position.
struct row_walk {
  dims index;
  index_t inner_axis = -1;  // the input axis that the last view axis moves along, or -1
  index_t inner_step = 0;
  index_t outer_axis = -1;
  index_t outer_step = 0;
};

inline row_walk begin_walk(const parallel::axis_map& map, const index_t* start) {
  row_walk result;
  result.index = map.base;
  const index_t rank = map.rank();
  for (index_t axis = 0; axis < rank; ++axis)
    if (map.from[axis] >= 0) result.index[map.from[axis]] += map.step[axis] * start[axis];
  if (rank >= 1) {
    result.inner_axis = map.from[rank - 1];
    result.inner_step = map.step[rank - 1];
  }
  if (rank >= 2) {
    result.outer_axis = map.from[rank - 2];
    result.outer_step = map.step[rank - 2];
  }
  return result;
}

/// The first address and the strides in bytes of a tensor.
class element_address {
 public:
  explicit element_address(const tensor& values)
      : values_(values), item_(static_cast<index_t>(values.item_bytes())) {
    for (const index_t stride : values.strides()) strides_.push_back(stride * item_);
  }
  index_t stride(index_t axis) const noexcept { return strides_[axis]; }
  const std::byte* first() const noexcept { return values_.data(); }

 private:
  tensor values_;
  index_t item_;
  dims strides_;
};

/// Copies `count` elements that lie `stride` bytes apart to contiguous memory, and moves `to`
/// behind them.
template <std::size_t item>
void copy_run(std::byte*& to, const std::byte* from, index_t count, index_t stride) {
  if (stride == static_cast<index_t>(item)) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * item);
    to += count * static_cast<index_t>(item);
    return;
  }
  for (index_t i = 0; i < count; ++i, to += item, from += stride) std::memcpy(to, from, item);
}

/// Makes a generator for a width of elements that is a compile-time constant.
template <template <std::size_t> class Generator, class... Arguments>
std::unique_ptr<leaf_generator> by_width(std::size_t item_bytes, Arguments&&... arguments) {
  switch (item_bytes) {
    case 1:
      return std::make_unique<Generator<1>>(arguments...);
    case 2:
      return std::make_unique<Generator<2>>(arguments...);
    case 4:
      return std::make_unique<Generator<4>>(arguments...);
    case 8:
      return std::make_unique<Generator<8>>(arguments...);
    default:
      return std::make_unique<Generator<16>>(arguments...);
  }
}

}  // namespace shale::ops
