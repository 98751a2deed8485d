// Divides the tiles of a plan into windows.
#pragma once

#include <algorithm>

#include "parallel/windows/streamed_memory.hpp"

namespace shale::parallel {

/// Window w consists of the tiles from w * tiles_per_window on; the last one may be shorter.
struct window_list {
  index_t tile_count = 0;
  index_t tiles_per_window = 1;

  index_t count() const noexcept { return ceil_div(tile_count, tiles_per_window); }
  index_t of_tile(index_t tile) const noexcept { return tile / tiles_per_window; }
  tile_numbers tiles(index_t window) const noexcept {
    return {window * tiles_per_window, std::min((window + 1) * tiles_per_window, tile_count)};
  }
};

}  // namespace shale::parallel
