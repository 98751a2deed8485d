// How much of a tile source views of it make the engine load.
#pragma once

#include <cstdint>
#include <span>

#include "ops/axis_map.hpp"
#include "shale/tile_source.hpp"

namespace shale::ops {

struct tile_amount {
  std::uint64_t tiles = 0;
  std::uint64_t elements = 0;
};

/// Tiles of `source` that hold an element of some of `views`, of which there are at most 64, and
/// all the elements of those tiles. Tiles that several views need count once, unless there are more
/// than a million along an axis.
/// Cost     O(1) for one view, O(tiles along each axis) for several
tile_amount tiles_touched(const tile_source& source, std::span<const axis_map> views);

}  // namespace shale::ops
