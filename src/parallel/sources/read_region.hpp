// Gathers a region of a tile source from its tiles.
#pragma once

#include "parallel/sources/tiles_of_call.hpp"
#include "shale/executor.hpp"
#include "shale/tile_source.hpp"

namespace shale::parallel {

/// A region of a source that takes every `step`-th position along each axis, `shape` in number,
/// from `start` on.
struct stepped_region {
  dims start;
  dims shape;  // no axis is empty
  dims step;   // positive
};

/// Reads a region of a source. If one tile holds all its elements, the result is a view of that
/// tile in the cache. Otherwise the elements are gathered into new memory of the executor's pool.
/// Only tiles that hold elements of the region are loaded.
/// Throws   cancelled (before each tile), io, corrupt, out_of_memory, exceptions of the source
tensor read_region(const tile_source& source, const stepped_region& box, tiles_of_call& cache,
                   executor& on);

}  // namespace shale::parallel
