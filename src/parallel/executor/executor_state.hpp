// Defines the state behind an executor, which its copies share: its threads, its memory budget, its
// counters.
#pragma once

#include <atomic>

#include "parallel/executor/counters.hpp"
#include "parallel/executor/decoded_tile_cache.hpp"
#include "parallel/executor/memory_tokens.hpp"
#include "parallel/threads/helper_arena.hpp"
#include "parallel/threads/single_turn.hpp"
#include "shale/error.hpp"
#include "shale/executor.hpp"

namespace shale {

struct executor::implementation {
  explicit implementation(const executor_options& options);

  const int threads;
  progress_sink* const progress;
  parallel::single_turn telling;  // held by the thread that calls the progress sink
  parallel::memory_tokens tokens;
  parallel::decoded_tile_cache decoded{tokens};
  parallel::helper_arenas helpers;                  // made by the first parallel call
  alignas(64) std::atomic<bool> cancelled = false;  // every call reads it

  parallel::counters count;
};

namespace detail {

struct executor_access {
  using implementation = executor::implementation;
  static implementation& of(const executor& on) noexcept { return *on.implementation_; }
};

}  // namespace detail

namespace parallel {

using executor_state = detail::executor_access::implementation;

/// The state that an executor shares with its copies. Threads: any
inline executor_state& state_of(const executor& on) noexcept {
  return detail::executor_access::of(on);
}

/// The executor of the calling thread, for a call of one pass, which is counted.
inline executor& begin_call() {
  executor& on = executor::current();
  state_of(on).count.pass();
  return on;
}

/// Called by loops on the calling thread, and inside long tiles.
/// Throws   cancelled
inline void require_not_cancelled(const executor& on) {
  if (state_of(on).cancelled.load(std::memory_order_relaxed))
    throw error(errc::cancelled, "the call was cancelled");
}

/// Whether a call in memory consists of its kernels alone: there is no sink to report to, no
/// checksum to compare, and the executor has not been cancelled.
inline bool runs_plainly(const executor& on) noexcept {
  const executor_state& state = state_of(on);
  return state.progress == nullptr && on.checksums() != checksum_use::compared &&
         !state.cancelled.load(std::memory_order_relaxed);
}

}  // namespace parallel
}  // namespace shale
