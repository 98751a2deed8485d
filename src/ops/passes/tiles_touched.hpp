// Counts the tiles of a source that the engine loads for a set of views of it.
#pragma once

#include <cstdint>
#include <span>

#include "parallel/sources/axis_map.hpp"
#include "shale/tile_source.hpp"

namespace shale::ops {

using parallel::axis_map;

/// Each number saturates at the largest value of its type.
struct tile_amount {
  std::uint64_t tiles = 0;
  std::uint64_t elements = 0;
};

/// Counts the tiles of `source` that hold an element of at least one of `views`, and all elements
/// of those tiles. There are at most 64 views. A tile that several views need counts once. But if
/// an axis has more than a million touched tiles, a tile counts once for each view that needs it.
/// Cost     O(1) for one view, O(tiles along each axis) for several
tile_amount tiles_touched(const tile_source& source, std::span<const axis_map> views);

}  // namespace shale::ops
