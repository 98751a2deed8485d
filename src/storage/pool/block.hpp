// A piece of a mapping that a segment_heap has handed out or keeps, and what the parts of the heap
// need to know about it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "storage/pool/size_classes.hpp"

namespace shale::detail {

using pool_clock = std::chrono::steady_clock;

/// What stands behind a free block.
enum class backing : std::uint8_t {
  dirty,  ///< memory that only we can use
  lazy,   ///< memory that the system takes when it needs some
  none,   ///< none: the next touch brings zeros
};

/// One cache line: the processor that frees a block is often not the one that used it last.
struct alignas(64) pool_block {
  std::byte* address = nullptr;
  std::size_t bytes = 0;
  pool_block* before = nullptr;  // in the heap's order, which within a mapping is that of addresses
  pool_block* after = nullptr;
  pool_block* bin_before = nullptr;  // of a free block: others of about its size
  pool_block* bin_after = nullptr;
  pool_clock::time_point since{};  // of a free block: when most of it became idle
  std::uint32_t dirty_granules = 0;
  bool free = false;
  bool leads = false;  // begins what is mapped in one piece: not joined with what comes before it
  backing behind = backing::none;

  std::byte* end() const noexcept { return address + bytes; }

  /// About how much of it was touched and not given back, taken to be its front, where earlier
  /// blocks were cut from; of a live block, when it was handed out.
  std::size_t dirty_bytes() const noexcept { return dirty_granules * granule_bytes; }

  /// An estimate, and no more than 32 TiB.
  void estimate_dirty(std::size_t granules) noexcept {
    constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max();
    dirty_granules = static_cast<std::uint32_t>(std::min(granules, most));
  }
};
static_assert(sizeof(pool_block) == 64);

}  // namespace shale::detail
