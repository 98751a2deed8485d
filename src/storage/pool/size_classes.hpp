// Which part of the pool serves a block, and the sizes of the blocks that threads keep at hand: four
// a doubling from 32 KiB to 1 MiB, so that rounding up adds less than a quarter.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "storage/pages.hpp"

namespace shale::detail {

/// Every block is aligned to this, and its size rounded to it.
inline constexpr std::size_t block_alignment = 64;

inline constexpr std::size_t class_bytes_min = std::size_t{32} << 10;
inline constexpr std::size_t class_bytes_max = std::size_t{1} << 20;

/// The alignment that class blocks and heap blocks have by themselves.
inline constexpr std::size_t natural_alignment = 4096;

/// Blocks above this get mappings of their own.
inline constexpr std::size_t dedicated_bytes_min = (std::size_t{256} << 20) + 1;

inline constexpr std::size_t size_classes = 21;

/// The class that serves `bytes` (32 KiB to 1 MiB).
constexpr std::size_t class_of(std::size_t bytes) noexcept {
  if (bytes <= class_bytes_min) return 0;
  const auto doubling = static_cast<std::size_t>(std::bit_width(bytes - 1)) - 1;  // 2^d < bytes
  const std::size_t step = std::size_t{1} << (doubling - 2);
  const std::size_t quarter = (bytes - (std::size_t{1} << doubling) + step - 1) / step;  // 1 to 4
  return (doubling - 15) * 4 + quarter;
}

/// Bytes of the blocks of a class.
constexpr std::size_t class_bytes(std::size_t index) noexcept {
  if (index == 0) return class_bytes_min;
  const std::size_t doubling = 15 + (index - 1) / 4;
  const std::size_t quarter = (index - 1) % 4 + 1;
  return (std::size_t{1} << doubling) + quarter * (std::size_t{1} << (doubling - 2));
}

/// Blocks that a thread keeps of a class before it gives half of them back.
constexpr std::size_t magazine_blocks(std::size_t index) noexcept {
  const std::size_t fitting = (std::size_t{512} << 10) / class_bytes(index);
  return fitting < 2 ? 2 : fitting;
}
inline constexpr std::size_t magazine_blocks_max = magazine_blocks(0);

/// Who serves a block.
enum class block_route : std::uint8_t { system, magazine, heap, dedicated };

constexpr block_route route_of(std::size_t bytes, std::size_t alignment) noexcept {
  if (bytes < class_bytes_min) return block_route::system;
  if (bytes >= dedicated_bytes_min) return block_route::dedicated;
  return bytes <= class_bytes_max && alignment <= natural_alignment ? block_route::magazine
                                                                    : block_route::heap;
}

}  // namespace shale::detail
