// Checks and normalises the bytes of bools that are written to files. The engine takes any byte but
// 0 as true. Files hold only 0 and 1, because the readers of other programs, and ours, rely on it.
#pragma once

#include <cstddef>
#include <span>

namespace shale::detail {

/// Whether a byte is neither 0 nor 1.
/// Cost     one pass at memory speed
inline bool has_odd_bools(std::span<const std::byte> elements) noexcept {
  unsigned char any = 0;
  for (const std::byte element : elements) any |= static_cast<unsigned char>(element);
  return any > 1;
}

/// Replaces every byte other than 0 by 1.
inline void make_stored_bools(std::span<std::byte> elements) noexcept {
  for (std::byte& element : elements) element = std::byte{element != std::byte{0}};
}

}  // namespace shale::detail
