// Decides which part of the pool serves a block, and defines the size classes of cached blocks:
// four per doubling from 32 KiB to 1 MiB, so that rounding up adds less than a quarter.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "storage/system/pages.hpp"

namespace shale::detail {

/// Every block is aligned to this number of bytes, and its size is rounded up to a multiple of it.
inline constexpr std::size_t block_alignment = 64;

inline constexpr std::size_t class_bytes_min = std::size_t{32} << 10;
inline constexpr std::size_t class_bytes_max = std::size_t{1} << 20;

/// The alignment that class blocks and heap blocks always have.
inline constexpr std::size_t natural_alignment = 4096;

/// The unit in which block sizes are counted; the nominal sizes of all classes are multiples of it.
inline constexpr std::size_t granule_bytes = std::size_t{8} << 10;

/// Size and address of a heap block are multiples of this number of bytes: a granule, or a page if
/// pages are larger. The system takes memory back by whole pages, so two blocks must never share a
/// page.
std::size_t block_unit_bytes() noexcept;

/// Blocks of this size or more get mappings of their own.
inline constexpr std::size_t whole_mapping_bytes_min = (std::size_t{256} << 20) + 1;

inline constexpr std::size_t size_classes = 21;

/// The class that serves `bytes` (32 KiB to 1 MiB).
constexpr std::size_t class_of(std::size_t bytes) noexcept {
  if (bytes <= class_bytes_min) return 0;
  const auto doubling = static_cast<std::size_t>(std::bit_width(bytes - 1)) - 1;  // 2^d < bytes
  const std::size_t step = std::size_t{1} << (doubling - 2);
  const std::size_t quarter = (bytes - (std::size_t{1} << doubling) + step - 1) / step;  // 1 to 4
  return (doubling - 15) * 4 + quarter;
}

/// Bytes of the blocks of a class before they are rounded to whole pages.
constexpr std::size_t nominal_class_bytes(std::size_t index) noexcept {
  if (index == 0) return class_bytes_min;
  const std::size_t doubling = 15 + (index - 1) / 4;
  const std::size_t quarter = (index - 1) % 4 + 1;
  return (std::size_t{1} << doubling) + quarter * (std::size_t{1} << (doubling - 2));
}

/// Bytes of the blocks of a class. With pages of 64 KiB, the five smallest classes have 64 KiB.
inline std::size_t block_bytes_of_class(std::size_t index) noexcept {
  return align_up(nominal_class_bytes(index), block_unit_bytes());
}

/// The largest number of blocks of a class that a thread keeps.
constexpr std::size_t magazine_blocks(std::size_t index) noexcept {
  const std::size_t fitting = (std::size_t{512} << 10) / nominal_class_bytes(index);
  return fitting < 4 ? 4 : fitting;
}
inline constexpr std::size_t magazine_blocks_max = magazine_blocks(0);

/// Kinds of blocks, from small to large. The kind says which part of the pool serves a block.
enum class block_kind : std::uint8_t {
  small,         ///< from malloc (small_block.hpp)
  of_class,      ///< of a size class; threads keep several of each class
  large,         ///< cut to size from a segment; a thread keeps the last one that it freed
  whole_mapping  ///< a mapping of its own
};

/// A request as the pool sees it. It is computed from size and alignment, so it is the same when
/// the block is freed.
struct block_request {
  block_kind kind;
  std::size_t bytes;  ///< rounded up; this number counts as live
  std::size_t alignment;
  std::size_t size_class;  ///< only for kind `of_class`
};

inline block_request request_for(std::size_t bytes, std::size_t alignment) noexcept {
  if (bytes < class_bytes_min)
    return {block_kind::small, align_up(bytes == 0 ? 1 : bytes, block_alignment), alignment, 0};
  if (bytes >= whole_mapping_bytes_min) {
    const bool absurd = bytes > std::numeric_limits<std::size_t>::max() / 2;
    return {block_kind::whole_mapping, absurd ? bytes : align_up(bytes, block_unit_bytes()),
            alignment, 0};
  }
  if (bytes > class_bytes_max || alignment > natural_alignment)
    return {block_kind::large, align_up(bytes, block_unit_bytes()), alignment, 0};
  const std::size_t size_class = class_of(bytes);
  return {block_kind::of_class, block_bytes_of_class(size_class), natural_alignment, size_class};
}

}  // namespace shale::detail
