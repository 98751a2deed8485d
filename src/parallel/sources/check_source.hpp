// Checks the dtype and the shapes that a tile source reports, before the engine relies on them.
#pragma once

#include "shale/tile_source.hpp"

namespace shale::parallel {

/// Throws   invalid_argument (an unknown dtype, two shapes of different ranks, a negative extent of
///          the shape, an extent of a tile that is not positive)
void check_source(const tile_source& source);

}  // namespace shale::parallel
