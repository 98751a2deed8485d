// Copies bytes with non-temporal stores, which write whole cache lines to memory and do not read
// them first. An ordinary store first brings its line into the cache. So non-temporal stores move
// fewer bytes, if the bytes are not needed in the cache soon. The engine measures which kind is
// faster: see store_choice.hpp.
#pragma once

#include <cstddef>
#include <span>

namespace shale::parallel {

/// Whether this processor's instruction set has non-temporal stores. If not, `copy_nontemporally`
/// is an ordinary copy.
#if defined(__SSE2__)
inline constexpr bool has_nontemporal_stores = true;
#else
inline constexpr bool has_nontemporal_stores = false;
#endif

/// Memory that is read next: `step` bytes for each line of output.
struct needed_soon {
  const std::byte* address;
  std::ptrdiff_t step;
};

/// Copies `bytes` bytes; the two ranges do not overlap. `to` and `from` may have any alignment: the
/// parts of a cache line at both ends are stored as usual.
/// Threads  other threads see the bytes only after `order_nontemporal_stores` on this thread
///
/// While it stores, it prefetches the memory that `needed` describes (see needed_soon). A loop that
/// only stores does not use the bandwidth for reads.
void copy_nontemporally(std::byte* to, const std::byte* from, std::size_t bytes,
                        std::span<const needed_soon> needed = {}) noexcept;

/// A buffer of this size stays in an L1 cache: kernels store into it, and its bytes are copied from
/// there.
inline constexpr std::size_t nontemporal_buffer_bytes = std::size_t{2} << 10;

/// Orders all earlier non-temporal stores of this thread before its later stores.
void order_nontemporal_stores() noexcept;

}  // namespace shale::parallel
