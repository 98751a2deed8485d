// Bools as files hold them. For the engine, any byte but 0 is true; files hold only 0 and 1,
// because readers of other programs, and ours, rely on it.
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

/// Makes every byte but 0 a 1.
inline void make_stored_bools(std::span<std::byte> elements) noexcept {
  for (std::byte& element : elements) element = std::byte{element != std::byte{0}};
}

}  // namespace shale::detail
