// Loads one tile of a source and counts it in the executor's statistics.
#pragma once

#include "parallel/executor/executor_state.hpp"
#include "parallel/executor/shared_work.hpp"
#include "shale/tile_source.hpp"

namespace shale::parallel {

inline void load_tile(const tile_source& source, const dims& tile, const tensor& into,
                      executor& on) {
  const foreign_call call;
  source.load(tile, into);
  state_of(on).count.source_tile(into.size_bytes(), source.stored_bytes(tile));
}

}  // namespace shale::parallel
