#include "parallel/ways/tiled_operands.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/allocating.hpp"
#include "core/grid.hpp"
#include "parallel/blocks/block_copy.hpp"
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

tiled_operands::tiled_operands(std::span<const loop_operand> operands, std::size_t cache_bytes,
                               executor& on)
    : operands_(operands), cache_(cache_bytes, on), on_(on), last_prefetched_(operands.size()) {
  std::vector<viewed_source> views;
  for (const loop_operand& operand : operands)
    if (operand.tiles && operand.tiles->source)
      views.push_back({operand.tiles->source, &operand.tiles->seen});
  for (const kept_source& kept : sources_to_keep(views, on))
    cache_.keep_decoded(*kept.source, *kept.decoded);
}

void tiled_operands::prefetch(const region& unit) {
  for (std::size_t k = 0; k < operands_.size(); ++k) {
    const tiled_elements* const tiles = operands_[k].tiles;
    if (!tiles || !tiles->source) continue;
    const dims tile = first_tile(*tiles, unit);
    if (!is_new_tile(k, tile) || cache_.knows(*tiles->source, tile)) continue;
    const foreign_call call;
    tiles->source->prefetch(tile);
  }
}

// Whether the tile differs from the last one that was requested for this operand.
bool tiled_operands::is_new_tile(std::size_t operand, const dims& tile) {
  const std::lock_guard lock(mutex_);
  std::optional<dims>& last = last_prefetched_[operand];
  if (last == tile) return false;
  last = tile;
  return true;
}

// Gathers boxes of one operand.
class tiled_operands::reader final : public box_reader {
 public:
  reader(tiled_operands& of, std::size_t operand) noexcept : of_(of), operand_(operand) {}
  tensor read(const region& box) const override { return of_.gather_box(operand_, box); }
  void read_into(const region& box, const tensor& into) const override {
    copy_elements_here(into, read(box));
  }

 private:
  tiled_operands& of_;
  const std::size_t operand_;
};

tensor tiled_operands::gather(std::size_t operand, const region& unit) {
  const loop_operand& all = operands_[operand];
  if (all.tiles->sink) return tensor::empty(unit.shape, all.tiles->sink->dtype(), &on_.pool());
  if (!all.halo) return gather_box(operand, unit);
  return haloed_box(*all.halo, unit, all.values.shape(), all.values.dtype(), reader(*this, operand),
                    on_);
}

tensor tiled_operands::gather_box(std::size_t operand, const region& box) {
  const tiled_elements& tiles = *operands_[operand].tiles;
  const source_box wanted = box_of(tiles, box);
  const tensor loaded = read_region(*tiles.source, wanted.needed, cache_, on_);
  return tensor(loaded.storage(), loaded.dtype(), wanted.seen.applied_to(loaded.layout()));
}

// A unit consists of whole tiles of the sink.
void tiled_operands::store(std::size_t operand, const region& unit, const tensor& values) {
  tile_source& sink = *operands_[operand].tiles->sink;
  detail::for_each_tile_under(unit, sink.tile_shape(), [&](const dims& tile) {
    const foreign_call call;
    const region part = tile_region(sink.shape(), sink.tile_shape(), tile);
    const tensor elements = detail::narrowed(values, part, unit.start);
    const auto store_tile = [&] { sink.store(tile, elements); };
    detail::calling_back(store_tile);
  });
}

}  // namespace shale::parallel
