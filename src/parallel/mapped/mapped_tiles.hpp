// Copies tiles between a mapped tensor and memory. A pass uses it for operands that it visits
// against their storage order, for example the columns of a row-major file. Such a tile consists of
// many short pieces of the file. They are copied a few at a time: through the mapping if they are in
// the page cache, and unmapped again, so only those few are resident; else, and to store them, by
// the file's descriptor, if the system allows that.
//
// Invariants
//   copies.1  pages of tiles that were in the page cache before this call stay there; pages that
//              this call had to read from the device, or stored and wrote back, are dropped again
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <vector>

#include "shale/executor.hpp"
#include "shale/memory_pool.hpp"
#include "shale/region.hpp"
#include "shale/tensor.hpp"

namespace shale::parallel {

class mapped_tiles {
 public:
  /// `values` lies in a mapped file and has no broadcast axes. `checksums` says whether pieces are
  /// compared with their stored checksums before they are loaded. A call takes an eighth of a tile
  /// from the pool, 64 KiB at least and 4 MiB at most.
  mapped_tiles(tensor values, const dims& tile_shape,
               checksum_use checksums = checksum_use::trusted,
               memory_pool& pool = memory_pool::default_pool());

  /// Copies a tile into `into`. Tiles at the tensor's edge are smaller; `into` has the tile's
  /// shape.
  /// Throws   io, corrupt, out_of_memory
  void load(const dims& tile, const tensor& into) const;

  /// Copies the elements of a box, which may cut tiles, into `into`, which has the box's shape.
  /// Throws   io, corrupt, out_of_memory
  void load_box(const region& box, const tensor& into) const;

  /// Replaces the elements of a tile.
  /// Throws   io, out_of_memory
  void store(const dims& tile, const tensor& from);

  /// Starts reading a tile's first pages into the page cache.
  void prefetch(const dims& tile) const noexcept;

  /// After the last store: waits until all stored pages are written back. Throws io
  void finish();

 private:
  enum class found : std::uint8_t { unknown, resident, cold };

  // A part of a tile in the file, and the corresponding part of a tensor in memory.
  struct moved_part {
    tensor mapped;
    tensor other;
  };

  struct stored_part {
    tensor mapped;
    bool cold;  // no page of its tile was in the page cache before
  };

  tensor part(const dims& tile) const;
  found look_up(const dims& tile) const;
  std::vector<moved_part> parts_of(const tensor& mapped, const tensor& other) const;
  void request(const tensor& values) const;
  void request_ends(const tensor& values) const;
  void load_part(const dims& tile, const tensor& values, const tensor& into) const;
  void write_back(const stored_part& stored);
  void end_write_back(const stored_part& stored) const;

  const tensor values_;
  const dims tile_shape_;
  const dims grid_;
  const checksum_use checksums_;
  memory_pool& pool_;
  const std::size_t part_bytes_max_;
  mutable std::vector<std::atomic<found>> found_;  // by tile

  std::mutex write_back_mutex_;
  std::deque<stored_part> in_write_back_;
  std::size_t bytes_in_write_back_ = 0;
};

}  // namespace shale::parallel
