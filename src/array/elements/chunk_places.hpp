// Divides the elements that a write covers into pieces, each of which lies in one chunk.
#pragma once

#include "parallel/sources/axis_map.hpp"
#include "shale/dims.hpp"
#include "shale/expr.hpp"
#include "shale/region.hpp"
#include "shale/tensor.hpp"

namespace shale::arrays {

/// The positions start[a] + i[a] * step[a] with 0 <= i[a] < shape[a], for every axis a of an array.
/// Steps are at least 1.
///
/// A *piece* consists of the positions that lie in one chunk. Pieces form a grid too. A chunk in
/// which no position lies has no piece, however far apart the positions are.
class chunk_places {
 public:
  /// The positions that a view without new axes shows, in ascending order.
  explicit chunk_places(const parallel::axis_map& view);
  explicit chunk_places(const region& part);

  const dims& shape() const noexcept { return shape_; }

  /// The map from the index of a position to the position.
  parallel::axis_map map() const;

  /// The number of pieces along each axis.
  dims pieces(const dims& chunk_shape) const;

  /// The indices i of the positions in a box of pieces.
  region indices_of(const region& pieces, const dims& chunk_shape) const;

  /// The chunk of a piece.
  dims chunk_of(const dims& piece, const dims& chunk_shape) const;

  /// The positions whose indices lie in a box.
  chunk_places part(const region& indices) const;

  /// The elements of `chunk` at these positions. Its first element lies at `origin` in the array.
  /// There is at least one position.
  tensor inside(const tensor& chunk, const dims& origin) const {
    tensor part = chunk;
    for (index_t axis = 0; axis < shape_.size(); ++axis) {
      const index_t first = start_[axis] - origin[axis];
      part = part.sliced(axis, {first, first + (shape_[axis] - 1) * step_[axis] + 1, step_[axis]});
    }
    return part;
  }

 private:
  // Consecutive pieces of an axis: the chunk of the first, and the indices i of their positions.
  struct piece_range {
    index_t chunk;
    index_t first;
    index_t length;
  };
  piece_range range_of(index_t axis, index_t piece, index_t count, index_t chunk_extent) const;

  dims start_;
  dims shape_;
  dims step_;
};

/// Reorders `values`, which has the shape of a view of an array, into ascending order of their
/// positions. The result has one axis for each axis of the array.
expr in_array_order(const expr& values, const parallel::axis_map& view);

}  // namespace shale::arrays
