// Reads the elements of an indexed leaf from the tiles of a source: only tiles that hold one of them
// are loaded.
//
// A plan says which axes of the source the leaf moves along, and what its points are (reading_plan).
// The points are sorted by the tiles that they lie in (placed_points), and then the tiles are read.
//
// Invariants
//   indexed_tiles.1  a tile is loaded if and only if an element lies in it, once for each part of the
//                    points. A part has as many points as a quarter of the budget holds, but at
//                    least 4,096
//   indexed_tiles.2  the tiles of a part are loaded in the row-major order of the grid
//   indexed_tiles.3  an index is read once, and checked, before its point is used
#pragma once

#include <vector>

#include "ops/graph/graph.hpp"
#include "ops/passes/tiles_touched.hpp"
#include "shale/executor.hpp"

namespace shale::ops {

/// Stores the elements of a leaf, whose input is a source leaf, in `out`, which has the leaf's shape
/// and dtype, and any layout. `indices` are the tensors of the leaf's indices.
/// Cost     for each point a few divisions, up to 56 bytes and one copy of its elements; the tiles
///          that the points lie in, in parallel
/// Throws   invalid_argument (an index is out of range), access_denied (`out` is read-only), io,
///          corrupt, out_of_memory, cancelled, exceptions of the source
void read_indexed_tiles(const detail::indexed_leaf& leaf, const std::vector<tensor>& indices,
                        const tensor& out, executor& on);

/// The most tiles that `read_indexed_tiles` loads in one part. Reads no index.
tile_amount indexed_tiles_max(const detail::indexed_leaf& leaf, const std::vector<tensor>& indices);

}  // namespace shale::ops
