// Tells AddressSanitizer which pool memory is not live and must not be touched.
#pragma once

#include <cstddef>

#include "core/address_sanitizer.hpp"

#ifdef SHALE_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace shale::detail {

/// From now on, an access to these bytes is reported.
inline void poison([[maybe_unused]] const void* address,
                   [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef SHALE_ADDRESS_SANITIZER
  __asan_poison_memory_region(address, bytes);
#endif
}

/// From now on, an access to these bytes is allowed. Also called before memory is unmapped, because
/// other memory may be mapped there later.
inline void unpoison([[maybe_unused]] const void* address,
                     [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef SHALE_ADDRESS_SANITIZER
  __asan_unpoison_memory_region(address, bytes);
#endif
}

}  // namespace shale::detail
