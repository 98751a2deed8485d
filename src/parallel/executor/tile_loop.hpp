// Runs numbered tiles in parallel. It is the only parallel loop of the library. Threads claim tiles
// in order, and each tile runs once.
//
// Invariants
//   loop.1  tiles are claimed in ascending order: below the highest tile that has begun, at most
//           `threads` - 1 tiles have not begun
//   loop.2  everything before the loop happens before every tile, and every tile happens before the
//           loop's return; locks that ThreadSanitizer sees order this (oneTBB is not instrumented)
//   loop.3  after a tile throws or the executor is cancelled, no further tile begins; the first
//           exception reaches the caller once every running tile has ended
//   loop.4  the caller's thread runs tiles from the start; it waits only for tiles that helpers
//           have begun, never for a thread that has not joined
//   loop.5  one thread at a time calls the executor's progress sink, without holding a lock; a
//           report that finds the sink busy is dropped, so no thread waits for a sink
//   loop.6  if a tile or a sink forks while helpers may work on the loop, the child does not return
//           from it: see shared_work.hpp
//   loop.7  a loop inside a tile of a loop that reports progress reports none, so that the sink
//           sees the numbers of one loop at a time
#pragma once

#include <algorithm>
#include <type_traits>

#include "shale/executor.hpp"
#include "shale/index.hpp"

namespace shale::parallel {

/// Is told when a loop fails, before the loop waits for the tiles that still run.
class failure_listener {
 public:
  /// Called once or several times, from any thread of the loop.
  virtual void loop_failed() noexcept = 0;

 protected:
  ~failure_listener() = default;
};

struct loop_options {
  /// If > 0: the most threads that work at once, for tiles that need much memory.
  int workers_max = 0;

  /// The bytes that all tiles process together, for the executor's progress sink; 0: no reports.
  std::uint64_t progress_bytes = 0;

  /// Whether the tiles count in the executor's statistics.
  bool counted = true;

  /// If not null: for tiles that wait for other tiles. It must outlive the loop.
  failure_listener* listener = nullptr;
};

/// The most workers that a loop over `count` tiles has; at least 1.
inline int workers_for(index_t count, const executor& on) noexcept {
  return static_cast<int>(std::clamp<index_t>(count, 1, on.threads()));
}

/// Runs `body(context, tile, worker)` for 0 <= tile < count. Workers have numbers below
/// on.threads(); two tiles that run at once have different workers. The caller is worker 0.
/// Cost     with one tile or one worker, only the calls of `body`; else two short locks, and a task
///          for the arena as long as too few helpers are awake
/// Throws   exceptions of `body` and of the progress sink, cancelled
void run_tiles(executor& on, index_t count, void (*body)(void*, index_t tile, int worker),
               void* context, const loop_options& options = {});

/// The same with a callable `body(tile, worker)`.
template <class Body>
void parallel_for_tiles(executor& on, index_t count, Body&& body,
                        const loop_options& options = {}) {
  run_tiles(
      on, count,
      [](void* context, index_t tile, int worker) {
        (*static_cast<std::remove_reference_t<Body>*>(context))(tile, worker);
      },
      &body, options);
}

}  // namespace shale::parallel
