#include "parallel/sources/decoded_source.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/saturating.hpp"
#include "parallel/executor/executor_state.hpp"

namespace shale::parallel {

namespace {

// The tiles of a source that a view touches along one axis.
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

// What a view touches of a source.
struct touched_tiles {
  std::uint64_t bytes = 0;  // as kept tiles count
  bool in_part = false;
};

// The bytes that so many tiles of the source take while they are kept.
std::uint64_t kept_bytes(const tile_source& source, std::uint64_t tiles) noexcept {
  std::uint64_t tile_bytes = item_bytes(source.dtype());
  for (const index_t extent : source.tile_shape())
    tile_bytes = detail::saturating_mul(tile_bytes, static_cast<std::uint64_t>(extent));
  detail::add_saturating(tile_bytes, decoded_tile_cache::overhead_bytes);
  return detail::saturating_mul(tiles, tile_bytes);
}

touched_tiles touched_by(const tile_source& source, const axis_map& seen) {
  std::uint64_t tiles = 1;
  bool in_part = false;
  for (index_t axis = 0; axis < source.shape().size(); ++axis) {
    const touched_axis touched = touched_along(axis, source, seen);
    if (touched.tiles == 0) return {};
    tiles = detail::saturating_mul(tiles, static_cast<std::uint64_t>(touched.tiles));
    in_part |= touched.in_part;
  }
  return {kept_bytes(source, tiles), in_part};
}

std::uint64_t room_bytes(const executor& on) noexcept {
  return state_of(on).decoded.capacity_bytes() / 2;
}

bool should_keep(const touched_tiles& touched, std::uint64_t room) noexcept {
  return touched.in_part && touched.bytes <= room;
}

const decoded_source* interface_of(const tile_source& source) noexcept {
  const auto* const decoded = dynamic_cast<const decoded_source*>(&source);
  return decoded != nullptr && decoded->keeps_tiles() ? decoded : nullptr;
}

}  // namespace

const decoded_source* to_keep_decoded(const tile_source& source, const axis_map& seen,
                                      const executor& on) noexcept {
  const decoded_source* const decoded = interface_of(source);
  if (decoded == nullptr) return nullptr;
  return should_keep(touched_by(source, seen), room_bytes(on)) ? decoded : nullptr;
}

const decoded_source* to_keep_decoded(const tile_source& source, std::uint64_t tiles,
                                      const executor& on) noexcept {
  const decoded_source* const decoded = interface_of(source);
  if (decoded == nullptr) return nullptr;
  return should_keep({kept_bytes(source, tiles), true}, room_bytes(on)) ? decoded : nullptr;
}

// All views of a source count together: the call keeps each tile of a kept source that it loads,
// whichever view needs it. A tile that two views touch counts twice.
std::vector<kept_source> sources_to_keep(std::span<const viewed_source> views, const executor& on) {
  struct candidate {
    kept_source kept;
    touched_tiles touched;
  };
  std::vector<candidate> candidates;
  for (const viewed_source& view : views) {
    const decoded_source* const decoded = interface_of(*view.source);
    if (decoded == nullptr) continue;
    auto known = std::find_if(candidates.begin(), candidates.end(), [&](const candidate& other) {
      return other.kept.source == view.source;
    });
    if (known == candidates.end())
      known = candidates.insert(known, candidate{{view.source, decoded}, {}});
    const touched_tiles more = touched_by(*view.source, *view.seen);
    detail::add_saturating(known->touched.bytes, more.bytes);
    known->touched.in_part |= more.in_part;
  }
  std::vector<kept_source> kept;
  std::uint64_t room = room_bytes(on);
  for (const candidate& each : candidates) {
    if (!should_keep(each.touched, room)) continue;
    room -= each.touched.bytes;
    kept.push_back(each.kept);
  }
  return kept;
}

}  // namespace shale::parallel
