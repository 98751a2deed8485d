// Bringing in one tile of a source under an executor, which counts it.
#pragma once

#include "parallel/executor_state.hpp"
#include "parallel/mapped_tiles.hpp"
#include "shale/tile_source.hpp"

namespace shale::parallel {

inline void load_tile(const tile_source& source, const dims& tile, const tensor& into,
                      executor& on) {
  source.load(tile, into);
  auto& count = on.state().count;
  count.bytes_read.fetch_add(into.size_bytes(), std::memory_order_relaxed);
  if (dynamic_cast<const mapped_tiles*>(&source) != nullptr) {
    count.mapped_tiles.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  count.tiles_decoded.fetch_add(1, std::memory_order_relaxed);
  count.stored_bytes_read.fetch_add(source.stored_bytes(tile), std::memory_order_relaxed);
}

}  // namespace shale::parallel
