// Evaluates expressions into a part of a chunked array.
#pragma once

#include "array/elements/chunk_tiles.hpp"
#include "parallel/sources/axis_map.hpp"
#include "shale/executor.hpp"
#include "shale/expr.hpp"

namespace shale::arrays {

/// Stores `values`, which have the shape of the view, at the places that the view shows. Blocks of
/// whole chunks are evaluated into memory and stored, one after the other; a block takes an eighth
/// of the memory budget, or one chunk. Reductions and scans are computed once.
/// If the values read the array at other places than they are stored at, they are first computed
/// into memory as a whole.
void write_part(chunk_tiles& tiles, const parallel::axis_map& view, const expr& values,
                executor& on);

}  // namespace shale::arrays
