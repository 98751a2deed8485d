#include "parallel/ways/joined_units.hpp"

#include <algorithm>

#include "core/saturating.hpp"
#include "shale/index.hpp"

namespace shale::parallel {

namespace {

bool cuts_tiles(const dims& unit, const dims& tile) {
  for (index_t axis = 0; axis < unit.size(); ++axis)
    if (unit[axis] < tile[axis]) return true;
  return false;
}

// The bytes of all tiles that a unit needs, if its corner is that of a tile.
std::uint64_t touched_bytes(const dims& unit, const source_tiles& source) {
  std::uint64_t bytes = source.bytes;
  for (index_t axis = 0; axis < unit.size(); ++axis)
    if (source.extents[axis] > 0)
      bytes = detail::saturating_mul(
          bytes, static_cast<std::uint64_t>(ceil_div(unit[axis], source.extents[axis])));
  return bytes;
}

std::uint64_t elements_of(const dims& unit) {
  std::uint64_t elements = 1;
  for (const index_t extent : unit)
    elements = detail::saturating_mul(elements, static_cast<std::uint64_t>(extent));
  return elements;
}

}  // namespace

// A tile is decoded once for each of the pieces into which units cut it. Joining m units along an
// axis divides their number by m, along whichever axis, and needs m times the memory. So the order
// of the axes does not matter; the first one is that along which the most units can be joined.
dims joined_units(const dims& unit, const dims& shape, std::span<const source_tiles> sources,
                  const joining_limits& limits) {
  dims wanted = unit;
  std::uint64_t cut_bytes = 0;
  for (const source_tiles& source : sources) {
    if (!cuts_tiles(unit, source.extents)) continue;
    detail::add_saturating(cut_bytes, touched_bytes(unit, source));
    for (index_t axis = 0; axis < unit.size(); ++axis)
      wanted[axis] = std::max(wanted[axis], source.extents[axis]);
  }
  if (cut_bytes <= limits.cache_bytes) return unit;
  dims joined = unit;
  const auto pieces = [&](index_t axis) { return ceil_div(wanted[axis], joined[axis]); };
  for (index_t turn = 0; turn < unit.size(); ++turn) {
    index_t along = 0;
    for (index_t axis = 1; axis < unit.size(); ++axis)
      if (pieces(axis) > pieces(along)) along = axis;
    const std::uint64_t fitting = limits.elements_max / elements_of(joined);
    const auto together = static_cast<index_t>(
        std::clamp<std::uint64_t>(fitting, 1, static_cast<std::uint64_t>(pieces(along))));
    if (together == 1) break;
    joined[along] = std::min(joined[along] * together, std::max(shape[along], unit[along]));
  }
  return joined;
}

}  // namespace shale::parallel
