// Chooses a small part to read of an array whose sizes come from a hostile file.
#pragma once

#include <algorithm>
#include <cstdint>

#include "shale/array.hpp"

namespace shale::test {

inline constexpr std::uint64_t observed_bytes_max = 1u << 20;

inline bool has_small_chunks(const array& stored) {
  std::uint64_t bytes = item_bytes(stored.dtype());
  for (const index_t extent : stored.chunk_shape()) {
    if (extent != 0 && bytes > observed_bytes_max / static_cast<std::uint64_t>(extent))
      return false;
    bytes *= static_cast<std::uint64_t>(extent);
  }
  return true;
}

/// The whole array if it is small; else the first elements along each axis; nothing if they lie in
/// large chunks.
inline region observed_part(const array& stored) {
  region part = region::all(stored.shape());
  const bool is_readable = stored.kind() == array_kind::dense || has_small_chunks(stored);
  if (is_readable && stored.size_bytes() <= observed_bytes_max) return part;
  index_t room = is_readable ? 512 : 0;
  for (index_t& extent : part.shape) {
    extent = std::min(extent, room);
    if (room > 0) room = std::max<index_t>(1, room / std::max<index_t>(extent, 1));
  }
  return part;
}

}  // namespace shale::test
