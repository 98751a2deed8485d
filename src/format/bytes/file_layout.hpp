// Defines the positions of the fixed pages in a container file, and the sizes and alignments of
// extents. docs/container-format.md, "The file", is this header in prose.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shale::format {

inline constexpr std::uint64_t page_bytes = 4096;

// The fixed pages. The header lies at byte 0.
inline constexpr std::uint64_t superblock_offsets[2] = {16u << 10, 32u << 10};
inline constexpr std::uint64_t live_page_offset = 48u << 10;
inline constexpr std::uint64_t mark_offset = live_page_offset + 16;  ///< of the running transaction
inline constexpr std::size_t mark_bytes = 16;
inline constexpr std::uint64_t first_extent_offset = 52u << 10;

/// All data lies below this offset. The bytes from here on are used for locks only.
inline constexpr std::uint64_t file_bytes_max = 1ull << 59;

/// Chunks start at multiples of this, and take up multiples of it.
inline constexpr std::uint64_t chunk_alignment = 64;

/// Dense extents of at least this many bytes start at a multiple of 2 MiB, so that they can be
/// mapped with huge pages. Smaller ones, and everything else that owns whole pages, start at a
/// multiple of 4 KiB.
inline constexpr std::uint64_t large_extent_bytes = 16u << 20;

/// The alignment of a dense extent of `bytes`. All extents of an array but its last must also be a
/// multiple of it long.
constexpr std::uint64_t dense_alignment(std::uint64_t bytes) noexcept {
  return bytes >= large_extent_bytes ? 2u << 20 : page_bytes;
}

/// Bytes of the file that a chunk of that many stored bytes takes up.
constexpr std::uint64_t chunk_space(std::uint64_t stored_bytes) noexcept {
  return (stored_bytes + chunk_alignment - 1) / chunk_alignment * chunk_alignment;
}

/// Bytes of the file that any other extent takes up.
constexpr std::uint64_t page_space(std::uint64_t bytes) noexcept {
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

}  // namespace shale::format
