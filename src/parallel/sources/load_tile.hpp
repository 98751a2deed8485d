// Loads one tile of a source and counts it in the executor's statistics.
#pragma once

#include <cstdint>

#include "core/allocating.hpp"
#include "parallel/executor/executor_state.hpp"
#include "parallel/executor/shared_work.hpp"
#include "shale/tile_source.hpp"

namespace shale::parallel {

inline void load_tile(const tile_source& source, const dims& tile, const tensor& into,
                      executor& on) {
  const foreign_call call;
  const std::uint64_t stored_bytes = detail::calling_back([&] {
    source.load(tile, into);
    return source.stored_bytes(tile);
  });
  state_of(on).count.source_tile(into.size_bytes(), stored_bytes);
}

}  // namespace shale::parallel
