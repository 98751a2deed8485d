// Makes views of a part of a tensor.
#pragma once

#include "shale/region.hpp"
#include "shale/tensor.hpp"

namespace shale::detail {

/// The elements of a region of a tensor or a layout.
/// Throws   invalid_argument (the region is not inside)
template <class Strided>
Strided narrowed(const Strided& values, const region& box) {
  Strided part = values;
  for (index_t axis = 0; axis < box.shape.size(); ++axis)
    part = part.narrow(axis, box.start[axis], box.shape[axis]);
  return part;
}

/// The elements of a region of an index space in which the tensor begins at `origin`.
inline tensor narrowed(const tensor& values, region box, const dims& origin) {
  for (index_t axis = 0; axis < origin.size(); ++axis) box.start[axis] -= origin[axis];
  return narrowed(values, box);
}

/// A view that has every element once: broadcast axes (stride 0) get length 1. `broadcast_to` the
/// old shape restores them.
inline tensor without_repeats(const tensor& values) {
  tensor once = values;
  for (index_t axis = 0; axis < values.rank(); ++axis)
    if (values.strides()[axis] == 0 && values.shape()[axis] > 1) once = once.narrow(axis, 0, 1);
  return once;
}

}  // namespace shale::detail
