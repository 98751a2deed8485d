// Reads operands of a pass from tile sources, and stores its outputs as tiles. A pass does this for
// operands with `operand_access::tiled`: see way.hpp.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "parallel/operands/loop_operand.hpp"
#include "parallel/sources/tiles_of_call.hpp"
#include "parallel/ways/haloed_box.hpp"
#include "shale/region.hpp"

namespace shale::parallel {

/// Provides the elements of a source, or memory for those of a sink, for one unit at a time.
/// Threads  any, for different units
class tiled_operands {
 public:
  /// Decoded tiles are kept up to `cache_bytes` until the pass ends; those of a pass that reads
  /// small parts of few tiles are kept by the executor (sources_to_keep).
  tiled_operands(std::span<const loop_operand> operands, std::size_t cache_bytes, executor& on);

  /// Starts reading the stored bytes of the first tile that the unit needs of each source, unless
  /// the cache has the tile, or the last call asked for it. So few tiles are asked for twice, also
  /// if all units need the same one.
  /// Threads  any
  void prefetch(const region& unit);

  /// Returns the operand's elements of a unit in the pass's axes, or new memory if it is written.
  /// An operand with a halo brings it along.
  /// Throws   io, corrupt, out_of_memory, cancelled
  tensor gather(std::size_t operand, const region& unit);

  /// Stores the elements of a unit. Throws io, out_of_space
  void store(std::size_t operand, const region& unit, const tensor& values);

 private:
  class reader;

  bool is_new_tile(std::size_t operand, const dims& tile);
  tensor gather_box(std::size_t operand, const region& box);

  const std::span<const loop_operand> operands_;
  tiles_of_call cache_;
  executor& on_;
  std::mutex mutex_;
  std::vector<std::optional<dims>> last_prefetched_;  // by operand number; under the lock
};

}  // namespace shale::parallel
