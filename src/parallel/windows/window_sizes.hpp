// Chooses the sizes of windows: how many tiles belong to one, how far reading runs ahead of the
// work, and how many written windows may wait for the end of their write-back.
//
// The windows that are resident at once must fit in the memory that was reserved (stream.4):
//   ahead    windows that are read before any worker is in them, so that the device always has
//            requests
//   work     windows that workers are in: with small windows, as many as there are workers
//   lag      written windows that all workers have left and whose write-back has not ended
// The windows that are in work and in lag have begun and have not retired: they are the spread.
//
// If the call writes, it waits for each window's write-back, so few large windows are best. Their
// size is the reserved memory divided by nine, up to 16 MiB: 3 windows ahead, 4 in lag, and 2 in
// work. Windows have fewer tiles if many workers would be in more than 2 windows, and these do not
// fit. If even windows of one tile do not fit, fewer are read ahead and fewer lag, and fewer
// workers run.
//
// If the call only reads, many small windows are best: several readers with a small window each
// keep a device busy. Their size is a sixteenth of the reserved memory, up to 2 MiB, and up to 1
// MiB with gaps, because many pieces take a reader longer. As many are read ahead as fit beside the
// windows of the workers, up to 16 MiB in sum.
//
// A window has at least one tile, so large tiles make large windows. Fewer workers run if not even
// the workers' windows fit. A call that writes to an operand with gaps, and whose tiles are larger
// than a window should be, has no lag.
#pragma once

#include <cstddef>

#include "shale/index.hpp"

namespace shale::parallel {

/// The numbers on which the sizes depend.
struct window_request {
  std::size_t reserved_bytes = 0;   ///< half of the budget, or less if other calls hold it
  std::size_t tile_bytes = 0;       ///< what a tile of all operands brings in
  std::size_t tile_span_bytes = 0;  ///< what a tile may map, gaps included, in operands that are
                                    ///< visited forwards, if the page cache has large pages
  index_t workers = 1;
  bool writes = false;
  bool gaps = false;  ///< some operand has gaps
};

struct window_sizes {
  index_t tiles_per_window = 0;
  index_t ahead = 0;
  index_t write_back_lag = 0;
  index_t spread = 1;   ///< the most windows that have begun and not retired; more than the lag
  int workers_max = 0;  ///< how many workers may have a tile at once; 0: any number
};

/// Together, `ahead` and `spread` windows fit in the reserved memory. If it does not hold one tile,
/// as when other calls hold the whole budget, one small window at a time remains.
window_sizes choose_window_sizes(const window_request& request);

}  // namespace shale::parallel
