// How much of an array to look at whose sizes a hostile file has chosen.
#pragma once

#include <algorithm>
#include <cstdint>

#include "shale/array.hpp"

namespace shale::test {

inline constexpr std::uint64_t observed_bytes_max = 1u << 20;

inline bool has_small_chunks(const array& stored) {
  std::uint64_t bytes = item_bytes(stored.dtype());
  for (const index_t each : stored.chunk_shape()) {
    if (each != 0 && bytes > observed_bytes_max / static_cast<std::uint64_t>(each)) return false;
    bytes *= static_cast<std::uint64_t>(each);
  }
  return true;
}

/// All of it, if that is little; else the first elements along each axis; none where they lie in
/// large chunks.
inline region observed_part(const array& stored) {
  region where = region::all(stored.shape());
  const bool is_readable = stored.kind() == array_kind::dense || has_small_chunks(stored);
  if (is_readable && stored.size_bytes() <= observed_bytes_max) return where;
  index_t room = is_readable ? 512 : 0;
  for (index_t& each : where.shape) {
    each = std::min(each, room);
    if (room > 0) room = std::max<index_t>(1, room / std::max<index_t>(each, 1));
  }
  return where;
}

}  // namespace shale::test
