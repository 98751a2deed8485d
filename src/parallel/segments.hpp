// The pieces of memory that a strided box of elements touches.
#pragma once

#include <algorithm>
#include <cstdlib>

#include "shale/dims.hpp"

namespace shale::parallel {

/// Calls `visit(begin, end)` for each piece, as byte positions, from the lowest stride of the axes
/// that jump to the highest. Pieces that are at most `gap_bytes` apart are one.
/// `first`  the lowest byte of the box
template <class Visit>
void for_each_segment(const dims& shape, const dims& strides_bytes, index_t first,
                      index_t item_bytes, index_t gap_bytes, Visit visit) {
  // From the widest stride to the narrowest; the narrow ones that leave no gap form the piece.
  dims order;
  for (index_t axis = 0; axis < shape.size(); ++axis)
    if (shape[axis] > 1 && strides_bytes[axis] != 0) order.push_back(axis);
  const auto width = [&](index_t axis) { return std::abs(strides_bytes[axis]); };
  std::sort(order.begin(), order.end(), [&](index_t a, index_t b) { return width(a) > width(b); });
  index_t bytes = item_bytes;
  while (!order.empty() && width(order.back()) <= bytes + gap_bytes) {
    bytes += width(order.back()) * (shape[order.back()] - 1);
    order.pop_back();
  }
  dims at = dims::filled(order.size(), 0);
  for (;;) {
    index_t begin = first;
    for (index_t i = 0; i < order.size(); ++i) begin += at[i] * width(order[i]);
    visit(begin, begin + bytes);
    index_t i = order.size() - 1;
    for (; i >= 0; --i) {
      if (++at[i] < shape[order[i]]) break;
      at[i] = 0;
    }
    if (i < 0) return;
  }
}

}  // namespace shale::parallel
