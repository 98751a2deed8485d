// What the engine reads operands from and writes results to: a grid of tiles over an index space.
#pragma once

#include <cstdint>
#include <memory>

#include "shale/dims.hpp"
#include "shale/dtype.hpp"
#include "shale/region.hpp"
#include "shale/tensor.hpp"

namespace [[gnu::visibility("default")]] shale {

/// Elements that are not in memory as a strided tensor: they come and go tile by tile.
/// Tile t of the grid covers start[a] = index[a] * tile_shape[a], cut at the edge of the shape.
/// Threads  load, store and prefetch are called from several threads at once, for different tiles
class tile_source {
 public:
  virtual ~tile_source();

  /// Fixed for as long as the source lives; the two shapes have one rank.
  virtual shale::dtype dtype() const noexcept = 0;
  virtual const dims& shape() const noexcept = 0;
  virtual const dims& tile_shape() const noexcept = 0;

  /// Brings one tile into `into`, whose shape is that of the tile after cutting.
  /// Throws   io, corrupt
  virtual void load(const dims& tile, const tensor& into) const = 0;

  /// Replaces one whole tile (after cutting).
  /// Throws   access_denied unless writable(), io, out_of_space
  virtual void store(const dims& tile, const tensor& from);

  /// Whether `store` may be called; false unless overridden.
  virtual bool writable() const noexcept { return false; }

  /// Starts bringing a tile's stored bytes into the page cache.
  virtual void prefetch(const dims& tile) const noexcept;

  /// Bytes that `load` of this tile reads from the device; for plans and statistics.
  virtual std::uint64_t stored_bytes(const dims& tile) const = 0;
};

/// The part of the index space that `tile` covers.
region tile_region(const dims& shape, const dims& tile_shape, const dims& tile);

}  // namespace shale
