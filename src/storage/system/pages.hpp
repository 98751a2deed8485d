// Page sizes, the size of requests for reading ahead, and alignment arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shale::detail {

/// The size of a base page of the system in bytes; a power of two.
std::size_t system_page_bytes() noexcept;

/// The size and the alignment of the processor's large pages.
inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

/// The bytes that one request for reading ahead may have (MADV_WILLNEED, POSIX_FADV_WILLNEED): the
/// kernel's default read-ahead of a device. The kernel silently drops the rest of a larger request.
inline constexpr std::size_t will_need_bytes_max = std::size_t{128} << 10;

/// `alignment` is a power of two.
template <class Unsigned>
constexpr Unsigned align_down(Unsigned value, std::size_t alignment) noexcept {
  return value & ~static_cast<Unsigned>(alignment - 1);
}

/// `alignment` is a power of two; `value + alignment - 1` must not overflow.
template <class Unsigned>
constexpr Unsigned align_up(Unsigned value, std::size_t alignment) noexcept {
  return align_down(static_cast<Unsigned>(value + (alignment - 1)), alignment);
}

}  // namespace shale::detail
