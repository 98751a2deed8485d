// The checksums of the format: XXH3, 64 bits for data, 128 for metadata, always with seed 0.
#pragma once

#include <cstdint>

#include "format/types.hpp"

namespace shale::format {

/// XXH3-64, for chunks and dense segments.
/// Cost     memory speed
std::uint64_t checksum_data(bytes_view bytes) noexcept;

/// XXH3-128, for whatever leads to data: header, superblocks, pages, overflow extents.
checksum128 checksum_metadata(bytes_view bytes) noexcept;

/// 32 hexadecimal digits, the high half first, as xxhsum prints them.
std::string to_string(const checksum128& checksum);

}  // namespace shale::format
