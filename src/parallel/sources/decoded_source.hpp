// Defines the interface of sources whose tiles an executor keeps decoded from one call to the next,
// and decides which calls keep them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "parallel/sources/axis_map.hpp"
#include "shale/executor.hpp"
#include "shale/tile_source.hpp"

namespace shale::parallel {

/// A second base class of such a source.
class decoded_source {
 public:
  /// Whether tiles may be kept: the source reads bytes that do not change.
  virtual bool keeps_tiles() const noexcept = 0;

  /// Returns a tile, row-major as `load` fills one, that nobody may change. It is kept by the
  /// executor, if there is room. The tile is counted in the executor's statistics.
  /// Throws   as tile_source::load
  /// Threads  any
  virtual tensor decoded_tile(const dims& tile, executor& on) const = 0;

 protected:
  ~decoded_source() = default;
};

/// Returns the interface of a source whose tiles a call should keep, or null. A call should keep
/// tiles if it reads only parts of them, so that later calls may need other parts, and if all tiles
/// that it touches fit in half of the executor's capacity for tiles. A call that reads whole tiles,
/// or many of them, would only evict other tiles, and use memory that is not in the processor's
/// caches. `seen` is the view of the source that the call reads.
/// Cost     O(rank)
const decoded_source* to_keep_decoded(const tile_source& source, const axis_map& seen,
                                      const executor& on) noexcept;

/// The same for a call that reads so many tiles, and not all elements of them.
const decoded_source* to_keep_decoded(const tile_source& source, std::uint64_t tiles,
                                      const executor& on) noexcept;

/// A view of a source that a call reads. Several views may be of one source.
struct viewed_source {
  const tile_source* source = nullptr;
  const axis_map* seen = nullptr;
};

/// A source whose tiles a call should keep, and its interface.
struct kept_source {
  const tile_source* source = nullptr;
  const decoded_source* decoded = nullptr;
};

/// The same for a call that reads several views, and that holds the tiles of kept sources until it
/// ends. It keeps those of a source if the tiles of all its views, together with those of sources
/// before it that are kept, fit in half of what the executor may keep.
/// Cost     O(views * (rank + sources))
/// Throws   bad_alloc
std::vector<kept_source> sources_to_keep(std::span<const viewed_source> views, const executor& on);

}  // namespace shale::parallel
