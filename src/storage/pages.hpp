// Page arithmetic, and the sizes of pages.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shale::detail {

/// Bytes of one page of the processor's base size; a power of two.
std::size_t page_bytes() noexcept;

/// What the processor's large pages cover, and what their addresses are aligned to.
inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

/// `alignment` is a power of two.
template <class Unsigned>
constexpr Unsigned align_down(Unsigned value, std::size_t alignment) noexcept {
  return value & ~static_cast<Unsigned>(alignment - 1);
}

/// As align_down; `value` must leave room above it.
template <class Unsigned>
constexpr Unsigned align_up(Unsigned value, std::size_t alignment) noexcept {
  return align_down(static_cast<Unsigned>(value + (alignment - 1)), alignment);
}

}  // namespace shale::detail
