// The one parallel loop: numbered tiles, claimed in order, each run once by some thread.
//
// Invariants
//   loop.1  tiles are claimed in ascending order: below the highest tile that has begun, all but
//           `threads` - 1 have begun too
//   loop.2  everything before the loop happens before every tile, and every tile before the loop's
//           return, by atomics that a race detector sees (oneTBB itself is not instrumented)
//   loop.3  after a tile throws or the executor is cancelled no further tile begins; the first
//           exception reaches the caller once every running tile has ended
#pragma once

#include <type_traits>

#include "shale/executor.hpp"
#include "shale/index.hpp"

namespace shale::parallel {

struct loop_options {
  /// If > 0, lets fewer threads work, for tiles that need much memory.
  int most_workers = 0;

  /// What all tiles together work through, as the executor's progress sink is told; 0: not told.
  std::uint64_t progress_bytes = 0;
};

/// Runs `body(context, tile, worker)` for 0 <= tile < count; 0 <= worker < on.threads(), and two
/// tiles that run at once have different workers.
void run_tiles(executor& on, index_t count, void (*body)(void*, index_t tile, int worker),
               void* context, const loop_options& options = {});

/// The same with a callable `body(tile, worker)`.
template <class Body>
void for_each_tile(executor& on, index_t count, Body&& body, const loop_options& options = {}) {
  run_tiles(
      on, count,
      [](void* context, index_t tile, int worker) {
        (*static_cast<std::remove_reference_t<Body>*>(context))(tile, worker);
      },
      &body, options);
}

}  // namespace shale::parallel
