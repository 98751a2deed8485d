// Reserves the memory that the running loads of a pass need for operands that are not used in
// place: copies of mapped operands, gathered tiles of sources, and units that sinks will store.
#pragma once

#include <optional>

#include "parallel/executor/executor_state.hpp"
#include "parallel/ways/way.hpp"

namespace shale::parallel {

/// Sums of the operands' bytes at one position of the pass: of an element of each, or of a lane.
struct bytes_per_position {
  std::size_t all = 0;
  std::size_t written = 0;
  std::size_t gathered = 0;  ///< read from tile sources
  std::size_t stored = 0;    ///< written to tile sources

  bytes_per_position(std::span<const loop_operand> operands, index_t lane_axis);
};

/// Takes the memory for its lifetime, and says how many loads may run at once. These take at most
/// half of the budget; if that does not hold one load for each thread, fewer threads work.
class load_memory {
 public:
  /// `copied_bytes` are the bytes of all copies at one position of the pass.
  load_memory(const way& chosen, const bytes_per_position& bytes, std::size_t copied_bytes,
              executor& on);

  /// The number of loads that may run at once.
  int workers() const noexcept { return workers_; }

  /// The capacity of the cache of decoded tiles.
  std::size_t cache_bytes(const executor& on) const noexcept;

 private:
  std::size_t gathered_bytes_;
  int workers_;
  std::optional<held_tokens> tokens_;
};

}  // namespace shale::parallel
