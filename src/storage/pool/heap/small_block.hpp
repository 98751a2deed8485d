// Takes small aligned blocks from malloc. posix_memalign does the same at several times the cost:
// it does not use the caches that malloc has for each thread.
//
// A block lies inside an allocation that is larger by its alignment. The address of the allocation
// stands in front of the block. malloc aligns to 16 bytes, so there are at least 16 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "core/address_sanitizer.hpp"
#include "storage/system/pages.hpp"

namespace shale::detail {

#ifdef SHALE_ADDRESS_SANITIZER

// AddressSanitizer finds accesses beside a block only if the block is the whole allocation.
inline void* allocate_small_block(std::size_t bytes, std::size_t alignment) noexcept {
  void* block = nullptr;
  return ::posix_memalign(&block, alignment, bytes) == 0 ? block : nullptr;
}
inline void free_small_block(void* block) noexcept { std::free(block); }

#else

/// `alignment` is a power of two, at least 16.
/// Returns  null if there is no memory
inline void* allocate_small_block(std::size_t bytes, std::size_t alignment) noexcept {
  static_assert(alignof(std::max_align_t) >= sizeof(void*));
  void* const allocation = std::malloc(bytes + alignment);
  if (allocation == nullptr) return nullptr;
  const auto first = reinterpret_cast<std::uintptr_t>(allocation) + sizeof(void*);
  void* const block = reinterpret_cast<void*>(align_up(first, alignment));
  static_cast<void**>(block)[-1] = allocation;
  return block;
}

inline void free_small_block(void* block) noexcept { std::free(static_cast<void**>(block)[-1]); }

#endif

}  // namespace shale::detail
