// Copies tiles between a mapped tensor and memory. A pass uses it for operands that it visits
// against their storage order, for example the columns of a row-major file. Such a tile consists of
// many short pieces of the mapping. They are copied a few at a time and unmapped again, so only
// those few are resident.
//
// Invariants
//   copies.1  pages that were in the page cache before this call stay there; pages that this call
//              had to read from the device are dropped again
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <vector>

#include "shale/executor.hpp"
#include "shale/region.hpp"
#include "shale/tensor.hpp"

namespace shale::parallel {

class mapped_tiles {
 public:
  /// `values` lies in a mapped file and has no broadcast axes. `checksums` says whether pieces are
  /// compared with their stored checksums before they are loaded.
  mapped_tiles(tensor values, const dims& tile_shape,
               checksum_use checksums = checksum_use::trusted);

  /// Copies a tile into `into`. Tiles at the tensor's edge are smaller; `into` has the tile's
  /// shape.
  /// Throws   io, corrupt
  void load(const dims& tile, const tensor& into) const;

  /// Copies the elements of a box, which may cut tiles, into `into`, which has the box's shape.
  /// Throws   io, corrupt
  void load_box(const region& box, const tensor& into) const;

  /// Replaces the elements of a tile.
  /// Throws   io
  void store(const dims& tile, const tensor& from);

  /// Starts reading a tile's pages into the page cache.
  void prefetch(const dims& tile) const noexcept;

  /// After the last store: waits until all stored pages are written back. Throws io
  void finish();

 private:
  enum class found : std::uint8_t { unknown, resident, cold };

  tensor part(const dims& tile) const;
  found look_up(const dims& tile) const;
  void request(const tensor& values) const;
  void load_part(const dims& tile, const tensor& values, const tensor& into) const;

  const tensor values_;
  const dims tile_shape_;
  const dims grid_;
  const checksum_use checksums_;
  mutable std::vector<std::atomic<found>> found_;  // by tile

  std::mutex write_back_mutex_;
  std::deque<byte_range> in_write_back_;  // stored ranges whose write-back has begun
};

}  // namespace shale::parallel
