// Describes where a chunk of an array lies in the file.
#pragma once

#include <cstdint>

#include "shale/dims.hpp"
#include "shale/region.hpp"

namespace [[gnu::visibility("default")]] shale {

/// A chunk that the file stores. Chunks that it does not store read as the fill value.
struct stored_chunk {
  dims index;                      ///< its place in the grid of chunks
  region part;                     ///< the elements of the array that it holds
  std::uint64_t offset = 0;        ///< of its first byte in the file, a multiple of 64
  std::uint64_t stored_bytes = 0;  ///< at least 1
  std::uint64_t checksum = 0;      ///< XXH3-64 of the stored bytes

  /// The bytes are the elements of a whole chunk, row-major, without delta, shuffle and
  /// compression, because these would not have made it shorter.
  bool raw = false;
};

}  // namespace shale
