// The free blocks of a heap, found by their size, and their bytes.
#pragma once

#include <cstddef>

#include "storage/pool/heap/block.hpp"
#include "storage/pool/heap/size_bins.hpp"

namespace shale::detail {

class free_blocks {
 public:
  void insert(pool_block& idle) noexcept {
    idle.free = true;
    bins_.insert(idle);
    bytes_ += idle.bytes;
    dirty_bytes_ += idle.dirty_bytes();
  }

  /// Removes a block, whose size and dirty bytes must be those of `insert`, unless `set_clean` was
  /// called for it.
  void erase(pool_block& idle) noexcept {
    idle.free = false;
    bins_.erase(idle);
    bytes_ -= idle.bytes;
    dirty_bytes_ -= idle.dirty_bytes();
  }

  /// Says that a free block has lost all its memory.
  void set_clean(pool_block& idle) noexcept {
    dirty_bytes_ -= idle.dirty_bytes();
    idle.dirty_granules = 0;
  }

  const size_bins& by_size() const noexcept { return bins_; }

  std::size_t bytes() const noexcept { return bytes_; }
  /// As estimated by the blocks.
  std::size_t dirty_bytes() const noexcept { return dirty_bytes_; }

 private:
  std::size_t bytes_ = 0;
  std::size_t dirty_bytes_ = 0;
  size_bins bins_;
};

}  // namespace shale::detail
