// Lists the pieces of memory that a strided box of elements touches.
#pragma once

#include <algorithm>
#include <cstdlib>

#include "core/grid.hpp"
#include "shale/dims.hpp"

namespace shale::parallel {

/// Calls `visit(begin, end)` for each piece, as byte positions, in nearly ascending order. Pieces
/// that are at most `gap_bytes` apart are visited as one. `first` is the lowest byte of the box.
template <class Visit>
void for_each_memory_piece(const dims& shape, const dims& strides_bytes, index_t first,
                           index_t item_bytes, index_t gap_bytes, Visit visit) {
  // Sort the axes from the widest stride to the narrowest. The narrow axes whose steps leave no gap
  // form one piece; every combination of the other axes' positions is the start of a piece.
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
  dims counts;
  for (const index_t axis : order) counts.push_back(shape[axis]);
  dims at = dims::filled(order.size(), 0);
  do {
    index_t begin = first;
    for (index_t i = 0; i < order.size(); ++i) begin += at[i] * width(order[i]);
    visit(begin, begin + bytes);
  } while (detail::advance(at, counts));
}

}  // namespace shale::parallel
