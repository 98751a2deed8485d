#include "parallel/sources/decoded_source.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/saturating.hpp"
#include "parallel/executor/executor_state.hpp"

namespace shale::parallel {

namespace {

// What a view touches of a source along one axis.
struct touched_axis {
  index_t tiles;
  bool in_part;  // whether it leaves elements of these tiles out
};

touched_axis touched_along(index_t axis, const tile_source& source, const axis_map& seen) {
  const index_t extent = source.tile_shape()[axis];
  index_t first = seen.base[axis];
  index_t positions = 1;
  index_t step = 1;
  for (index_t walker = 0; walker < seen.rank(); ++walker) {
    if (seen.from[walker] != axis) continue;
    positions = seen.shape[walker];
    if (positions < 2) continue;
    step = std::abs(seen.step[walker]);
    if (seen.step[walker] < 0) first -= (positions - 1) * step;
  }
  if (positions == 0) return {0, false};
  if (step > extent) return {positions, extent > 1};  // each position has a tile of its own
  const index_t last = first + (positions - 1) * step;
  const index_t beyond = std::min(extent - 1 - last % extent, source.shape()[axis] - 1 - last);
  const index_t elements = last + beyond + 1 - first / extent * extent;  // of the tiles
  return {last / extent - first / extent + 1, positions < elements};
}

}  // namespace

const decoded_source* to_keep_decoded(const tile_source& source, const axis_map& seen,
                                      const executor& on) noexcept {
  const auto* const decoded = dynamic_cast<const decoded_source*>(&source);
  if (decoded == nullptr || !decoded->keeps_tiles()) return nullptr;
  std::uint64_t tiles = 1;
  std::uint64_t tile_bytes = item_bytes(source.dtype());
  bool in_part = false;
  for (index_t axis = 0; axis < source.shape().size(); ++axis) {
    const touched_axis touched = touched_along(axis, source, seen);
    if (touched.tiles == 0) return nullptr;
    tiles = detail::saturating_mul(tiles, static_cast<std::uint64_t>(touched.tiles));
    tile_bytes =
        detail::saturating_mul(tile_bytes, static_cast<std::uint64_t>(source.tile_shape()[axis]));
    in_part |= touched.in_part;
  }
  detail::add_saturating(tile_bytes, decoded_tiles::bytes_beside);
  const std::uint64_t bytes = detail::saturating_mul(tiles, tile_bytes);
  const bool fits = bytes <= state_of(on).decoded.capacity_bytes() / 2;
  return in_part && fits ? decoded : nullptr;
}

}  // namespace shale::parallel
