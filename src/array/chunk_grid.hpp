// Which chunks a region touches, and what part of each.
#pragma once

#include "shale/region.hpp"
#include "shale/tensor.hpp"

namespace shale::arrays {

/// A box of tile indices.
struct tile_range {
  dims first;
  dims count;  ///< a 0 where the region is empty

  index_t size() const noexcept;

  /// Tile `number` of the range, row-major, 0 <= number < size().
  dims at(index_t number) const noexcept;
};

/// The tiles that share an element with `where`, which lies inside the index space.
tile_range tiles_touched(const region& where, const dims& tile_shape);

/// What two boxes that touch have in common.
region intersection(const region& a, const region& b);

/// The elements `piece` of the index space, of a tensor whose element 0 lies at `origin` of it.
tensor part(const tensor& values, const region& piece, const dims& origin);

}  // namespace shale::arrays
