#include "ops/evaluation/rolling_tiles.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/allocating.hpp"
#include "core/grid.hpp"
#include "ops/evaluation/computed_stages.hpp"
#include "ops/leaves/rolling_lanes.hpp"
#include "parallel/blocks/block_copy.hpp"
#include "shale/executor.hpp"

namespace shale::ops {

using namespace detail;

namespace {

// A tile of short windows has about this many results.
constexpr index_t tile_elements = index_t{1} << 17;

// Along the axes after the rolled axis (*behind* it), a tile has several elements, which are
// computed side by side. Their windows together have at most this many elements. But a tile has at
// least `behind_min` such elements, even if their windows then have more.
constexpr index_t window_elements = index_t{1} << 18;

// The least and the greatest number of elements of a tile behind the axis. Such elements are
// neighbours in files. If the rolled axis is short, a tile may have more than `behind_max`.
constexpr index_t behind_min = 16;
constexpr index_t behind_max = 2048;

// The shape of tiles over an operand in memory or in a mapped file. A tile of short windows is at
// least twice as long as a window, so that few elements are read again. Tiles of longer windows are
// as long as one.
dims tile_in_memory(const dims& shape, index_t axis, index_t width) {
  dims tile = shape;
  for (index_t& extent : tile) extent = std::max<index_t>(extent, 1);
  const index_t along = tile[axis];
  // Cuts the tile along an axis to at most `room` elements. Returns how many times as long the
  // other axes may become.
  const auto take_room = [&](index_t other, index_t room) {
    tile[other] = std::clamp<index_t>(room, 1, tile[other]);
    return std::max<index_t>(room / tile[other], 1);
  };
  // The number of elements that `count` neighbouring windows cover. It is at most the extent of the
  // operand along the axis.
  const auto elements_under = [&](index_t count) { return count + (width - 1); };
  const index_t widest = std::max(behind_max, tile_elements / elements_under(along));
  index_t room = std::clamp(window_elements / width, behind_min, widest);
  for (index_t other = shape.size() - 1; other > axis; --other) room = take_room(other, room);
  index_t behind = 1;
  for (index_t other = axis + 1; other < shape.size(); ++other) behind *= tile[other];
  const index_t windows = width <= window_elements / behind ? 2 : 1;
  tile[axis] = std::clamp(tile_elements / behind, std::min(along, windows * width), along);
  room = std::max<index_t>(tile_elements / behind / elements_under(tile[axis]), 1);
  for (index_t other = axis - 1; other >= 0; --other) room = take_room(other, room);
  return tile;
}

// Tiles of sources are cut as little as possible, since each part decodes them again.
dims rolling_tile(const stage& made, const node_ref& input) {
  const index_t axis = made.axes[0];
  const dims sources = extents_of_sources(input);
  dims tile = tile_in_memory(made.shape, axis, made.width);
  for (index_t other = 0; other < tile.size(); ++other) {
    const index_t whole = std::max<index_t>(made.shape[other], 1);
    const index_t extent = std::min(sources[other], whole);
    const index_t tiles = other == axis ? ceil_div(tile[other], extent) : tile[other] / extent;
    tile[other] = tiles > whole / extent ? whole : std::max<index_t>(tiles, 1) * extent;
  }
  return tile;
}

}  // namespace

rolling_tiles::rolling_tiles(const stage& made, node_ref input)
    : operand_(std::move(input)),
      kind_(made.kind),
      type_(made.type),
      axis_(made.axes[0]),
      width_(made.width),
      shape_(made.shape),
      tile_shape_(rolling_tile(made, operand_.operand())) {}

void rolling_tiles::load(const dims& tile, const tensor& values) const {
  allocating([&] {
    const region box = tile_region(shape_, tile_shape_, tile);
    region elements = box;
    elements.shape[axis_] += width_ - 1;
    const tensor held = operand_.held(elements);
    const tensor results = values.is_contiguous()
                               ? values
                               : tensor::empty(box.shape, type_, &executor::current().pool());
    reduce_windows(kind_, held, results, {axis_, width_, box.start[axis_]});
    held.storage().check();
    if (!values.is_contiguous()) parallel::copy_elements_here(values, results);
  });
}

node_ref make_rolling_leaf(const stage& made, const staged_values& values) {
  return make_leaf(std::make_shared<const rolling_tiles>(made, with_values(made.input, values)));
}

}  // namespace shale::ops
