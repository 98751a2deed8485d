// Provides block descriptors and reuses them, so that cutting and joining blocks seldom allocates.
// Descriptors stay for the life of the heap and take less than a hundredth of the memory that they
// described.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "storage/pool/heap/block.hpp"

namespace shale::detail {

class block_supply {
 public:
  block_supply() = default;
  ~block_supply();
  block_supply(const block_supply&) = delete;
  block_supply& operator=(const block_supply&) = delete;

  /// A descriptor, which may still contain old values. Null if there is no memory for more
  /// descriptors.
  pool_block* get() noexcept {
    if (idle_ == nullptr && !grow()) return nullptr;
    return std::exchange(idle_, idle_->after);
  }

  /// Takes a descriptor back. Allocates nothing.
  void put(pool_block& unused) noexcept {
    unused.after = idle_;
    idle_ = &unused;
  }

 private:
  static constexpr std::size_t slab_blocks = 63;  // fits in one page
  struct slab {
    slab* next = nullptr;
    std::array<pool_block, slab_blocks> blocks;
  };

  bool grow() noexcept;

  slab* slabs_ = nullptr;
  pool_block* idle_ = nullptr;
};

}  // namespace shale::detail
