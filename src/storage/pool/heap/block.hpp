// Describes a block: a piece of a mapping that a segment_heap has allocated or keeps free.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "storage/pool/heap/size_classes.hpp"

namespace shale::detail {

using pool_clock = std::chrono::steady_clock;

/// The state of a free block's memory.
enum class memory_state : std::uint8_t {
  dirty,  ///< resident memory that only this process can use
  lazy,   ///< memory that the system may take when it needs some
  none,   ///< no memory: the next access brings zeros
};

/// Fits in one cache line. The processor that frees a block is often not the one that used the
/// descriptor last, so freeing then costs one cache miss.
struct alignas(64) pool_block {
  std::byte* address = nullptr;
  std::size_t bytes = 0;
  pool_block* before = nullptr;  // in the heap's list (see heap.1)
  pool_block* after = nullptr;
  pool_block* bin_before = nullptr;  // for a free block: others of about its size
  pool_block* bin_after = nullptr;
  pool_clock::time_point since{};  // for a free block: when most of it became idle
  std::uint32_t dirty_granules = 0;
  bool free = false;
  bool leads = false;  // first block of a contiguous mapping: never joined with the block before it
  memory_state memory = memory_state::none;

  std::byte* end() const noexcept { return address + bytes; }

  /// An estimate of the touched bytes that were not given back. They are assumed to be at the
  /// front, because earlier blocks were cut from there. For a live block: the estimate when it was
  /// allocated.
  std::size_t dirty_bytes() const noexcept { return dirty_granules * granule_bytes; }

  /// Sets the estimate, which is limited to 32 TiB.
  void estimate_dirty(std::size_t granules) noexcept {
    constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max();
    dirty_granules = static_cast<std::uint32_t>(std::min(granules, most));
  }
};
static_assert(sizeof(pool_block) == 64);

}  // namespace shale::detail
