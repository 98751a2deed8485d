// Joins units that cut the tiles of sources.
//
// A unit may need a piece of many tiles: if a sink has columns and a source has rows, each column
// needs all rows. If the cache does not hold so many tiles, they are gone when the next unit needs
// them, and each tile is decoded as often as units cut it. So neighbours along the axes along which
// tiles are cut become one unit, as many as fit in memory:
//
//   source           sink             joined units
//   +-----------+    +--+--+--+--+    +-----+-----+
//   +-----------+    |  |  |  |  |    |     |     |   each tile of the source is decoded twice,
//   +-----------+    |  |  |  |  |    |     |     |   not four times
//   +-----------+    +--+--+--+--+    +-----+-----+
#pragma once

#include <cstdint>
#include <span>

#include "shale/dims.hpp"

namespace shale::parallel {

/// The tiles of a source that a pass reads.
struct source_tiles {
  dims extents;  ///< of a tile in the axes of the pass; 0 where the source is not indexed
  std::uint64_t bytes = 0;  ///< of a tile
};

struct joining_limits {
  std::uint64_t cache_bytes = 0;   ///< of the tile cache; tiles that fit in it are decoded once
  std::uint64_t elements_max = 0;  ///< of a joined unit
};

/// Returns the extents of units that consist of whole units of extents `unit`, which are positive.
/// They are `unit` if the cache holds the tiles that a unit cuts, or if two units are too large.
/// Cost     O(rank * (rank + sources))
dims joined_units(const dims& unit, const dims& shape, std::span<const source_tiles> sources,
                  const joining_limits& limits);

}  // namespace shale::parallel
