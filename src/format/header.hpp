// The first page of the file: written once, never changed. docs/format.md, "Header", is this file
// in prose.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "format/types.hpp"

namespace shale::format {

inline constexpr std::uint64_t page_bytes = 4096;

// Where the fixed pages lie.
inline constexpr std::uint64_t superblock_offsets[2] = {16u << 10, 32u << 10};
inline constexpr std::uint64_t live_page_offset = 48u << 10;
inline constexpr std::uint64_t first_extent_offset = 52u << 10;

/// No byte of data lies at or beyond this offset: that is where locks are.
inline constexpr std::uint64_t file_bytes_max = 1ull << 59;

/// Chunks start at multiples of this, and take up multiples of it.
inline constexpr std::uint64_t chunk_alignment = 64;

inline constexpr std::uint32_t header_version = 1;

struct header {
  uuid id;
};

using header_page = std::array<std::byte, page_bytes>;

header_page encode_header(const header& fields);

/// Throws   corrupt (not a container, or damaged), unsupported (a later version)
header decode_header(const header_page& page, const std::string& path);

}  // namespace shale::format
