// AddressSanitizer's view of pool memory: what is not live must not be touched.
#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SHALE_POISONS 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SHALE_POISONS 1
#endif

#ifdef SHALE_POISONS
#include <sanitizer/asan_interface.h>
#endif

namespace shale::detail {

/// Touching these bytes is reported from now on.
inline void poison([[maybe_unused]] const void* address,
                   [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef SHALE_POISONS
  __asan_poison_memory_region(address, bytes);
#endif
}

/// Touching these bytes is right from now on; also before they go back to the system, which may
/// place somebody else's there.
inline void unpoison([[maybe_unused]] const void* address,
                     [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef SHALE_POISONS
  __asan_unpoison_memory_region(address, bytes);
#endif
}

}  // namespace shale::detail

#undef SHALE_POISONS
