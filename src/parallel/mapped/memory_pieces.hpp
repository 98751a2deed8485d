// Lists the pieces of memory that a strided box of elements touches.
#pragma once

#include <algorithm>
#include <cstdlib>

#include "core/grid.hpp"
#include "shale/dims.hpp"

namespace shale::parallel {

/// The pieces are equal, and begin at regular distances: for every combination of the positions
/// along `axes` there is one.
struct memory_pieces {
  dims axes;  ///< from the widest stride to the narrowest
  index_t bytes = 0;
};

/// Pieces that are at most `gap_bytes` apart are one.
inline memory_pieces pieces_of(const dims& shape, const dims& strides_bytes, index_t item_bytes,
                               index_t gap_bytes) {
  // Sort the axes from the widest stride to the narrowest. The narrow axes whose steps leave no gap
  // form one piece.
  memory_pieces found{.axes = {}, .bytes = item_bytes};
  for (index_t axis = 0; axis < shape.size(); ++axis)
    if (shape[axis] > 1 && strides_bytes[axis] != 0) found.axes.push_back(axis);
  const auto width = [&](index_t axis) { return std::abs(strides_bytes[axis]); };
  std::sort(found.axes.begin(), found.axes.end(),
            [&](index_t a, index_t b) { return width(a) > width(b); });
  while (!found.axes.empty() && width(found.axes.back()) <= found.bytes + gap_bytes) {
    found.bytes += width(found.axes.back()) * (shape[found.axes.back()] - 1);
    found.axes.pop_back();
  }
  return found;
}

/// Calls `visit(begin, end)` for each piece, as byte positions, in nearly ascending order. Pieces
/// that are at most `gap_bytes` apart are visited as one. `first` is the lowest byte of the box.
template <class Visit>
void for_each_memory_piece(const dims& shape, const dims& strides_bytes, index_t first,
                           index_t item_bytes, index_t gap_bytes, Visit visit) {
  const memory_pieces pieces = pieces_of(shape, strides_bytes, item_bytes, gap_bytes);
  dims counts;
  for (const index_t axis : pieces.axes) counts.push_back(shape[axis]);
  dims at = dims::filled(counts.size(), 0);
  do {
    index_t begin = first;
    for (index_t i = 0; i < at.size(); ++i)
      begin += at[i] * std::abs(strides_bytes[pieces.axes[i]]);
    visit(begin, begin + pieces.bytes);
  } while (detail::advance(at, counts));
}

}  // namespace shale::parallel
