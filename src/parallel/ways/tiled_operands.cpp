#include "parallel/ways/tiled_operands.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/grid.hpp"
#include "parallel/executor/shared_work.hpp"
#include "parallel/sources/read_region.hpp"
#include "tensor/parts.hpp"

namespace shale::parallel {

namespace {

// The elements of a source that a box of the pass needs, and the view of them in the pass's axes
// once they have been gathered without gaps.
struct source_box {
  stepped_region needed;
  axis_map seen;
};

source_box box_of(const tiled_elements& tiles, const region& box) {
  const axis_map& map = tiles.seen;
  const index_t rank = map.base.size();
  source_box result{{map.base, dims::filled(rank, 1), dims::filled(rank, 1)},
                    {dims::filled(rank, 0), box.shape, map.from, {}}};
  result.seen.step = dims::filled(box.shape.size(), 1);
  for (index_t axis = 0; axis < box.shape.size(); ++axis) {
    const index_t from = map.from[axis];
    if (from < 0) continue;
    const index_t step = map.step[axis];
    const index_t first = result.needed.start[from] + box.start[axis] * step;
    const index_t last = first + (box.shape[axis] - 1) * step;
    result.needed.start[from] = std::min(first, last);
    result.needed.shape[from] = box.shape[axis];
    if (box.shape[axis] == 1) continue;
    result.needed.step[from] = std::abs(step);
    if (step > 0) continue;
    result.seen.step[axis] = -1;
    result.seen.base[from] = box.shape[axis] - 1;
  }
  return result;
}

// Returns the tile that holds the source's element at the start of a box.
dims first_tile(const tiled_elements& tiles, const region& box) {
  dims tile = tiles.seen.base;
  for (index_t axis = 0; axis < box.shape.size(); ++axis)
    if (const index_t from = tiles.seen.from[axis]; from >= 0)
      tile[from] += tiles.seen.step[axis] * box.start[axis];
  for (index_t axis = 0; axis < tile.size(); ++axis) tile[axis] /= tiles.source->tile_shape()[axis];
  return tile;
}

}  // namespace

void tiled_operands::prefetch(const region& unit) const {
  for (const auto& operand : operands_) {
    if (!operand.tiles || !operand.tiles->source) continue;
    const foreign_call call;
    operand.tiles->source->prefetch(first_tile(*operand.tiles, unit));
  }
}

tensor tiled_operands::gather(std::size_t operand, const region& unit) {
  const tiled_elements& tiles = *operands_[operand].tiles;
  if (tiles.sink) return tensor::empty(unit.shape, tiles.sink->dtype(), &on_.pool());
  const source_box box = box_of(tiles, unit);
  const tensor loaded = read_region(*tiles.source, box.needed, cache_, on_);
  return tensor(loaded.storage(), loaded.dtype(), box.seen.applied_to(loaded.layout()));
}

// A unit consists of whole tiles of the sink.
void tiled_operands::store(std::size_t operand, const region& unit, const tensor& values) {
  tile_source& sink = *operands_[operand].tiles->sink;
  detail::for_each_tile_under(unit, sink.tile_shape(), [&](const dims& tile) {
    const foreign_call call;
    const region part = tile_region(sink.shape(), sink.tile_shape(), tile);
    sink.store(tile, detail::narrowed(values, part, unit.start));
  });
}

}  // namespace shale::parallel
