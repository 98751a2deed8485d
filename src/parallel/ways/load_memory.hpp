// Reserves the memory that the running loads of a pass need for operands that are not used in
// place: copies of mapped operands, gathered tiles of sources, and units that sinks will store. It
// also reserves the cache of decoded tiles, and memory for halos that leave their operands.
#pragma once

#include <optional>

#include "parallel/executor/executor_state.hpp"
#include "parallel/ways/way.hpp"

namespace shale::parallel {

/// Sums of the operands' bytes at one position of the pass: of an element of each, or of a lane.
struct bytes_per_position {
  std::size_t all = 0;
  std::size_t written = 0;

  bytes_per_position(std::span<const loop_operand> operands, index_t lane_axis);
};

/// Takes the memory for its lifetime, and says how many loads may run at once. Running loads take
/// at most half of the budget that other calls have left. If that is too little for one load per
/// thread, fewer threads work; there are never more of them than loads. One thread always works, so
/// several calls together may exceed the budget, by one load each. Tile sources have no lanes, so a
/// pass over lanes has no tiled operands.
class load_memory {
 public:
  /// `copied_bytes` are the bytes of all copies without halos at one position of the pass.
  load_memory(const way& chosen, std::span<const loop_operand> operands, std::size_t copied_bytes,
              executor& on);

  /// The number of loads that may run at once.
  int workers() const noexcept { return workers_; }

  /// The number of loads whose stored bytes are requested before they begin. The bytes that are
  /// requested for copies come into the page cache. They fit in the part of the budget that this
  /// call and all others leave.
  index_t ahead() const noexcept { return ahead_; }

  /// The capacity of the cache of decoded tiles: a quarter of what other calls have left, but at
  /// least the tiles that the running loads use, and at most those that the sources have.
  std::size_t cache_bytes() const noexcept { return cache_bytes_; }

 private:
  int workers_ = 1;
  index_t ahead_ = 0;
  std::size_t cache_bytes_ = 0;
  std::optional<held_tokens> tokens_;
};

}  // namespace shale::parallel
