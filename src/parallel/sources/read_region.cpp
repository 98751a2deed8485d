#include "parallel/sources/read_region.hpp"

#include <algorithm>
#include <vector>

#include "core/grid.hpp"
#include "parallel/blocks/block_copy.hpp"
#include "parallel/executor/executor_state.hpp"
#include "tensor/parts.hpp"

namespace shale::parallel {

namespace {

// The positions of a stepped region, along one axis, that lie in one tile.
struct run_in_tile {
  index_t tile;
  index_t first;  // number of its first position within the region
  index_t count;
  index_t offset;  // the first position within the tile
};

std::vector<run_in_tile> runs_along(index_t axis, const stepped_region& box, index_t extent) {
  std::vector<run_in_tile> runs;
  const index_t step = box.step[axis];
  for (index_t first = 0; first < box.shape[axis]; first += runs.back().count) {
    const index_t position = box.start[axis] + first * step;
    const index_t offset = position % extent;
    const index_t inside = (extent - offset - 1) / step + 1;
    runs.push_back({position / extent, first, std::min(inside, box.shape[axis] - first), offset});
  }
  return runs;
}

}  // namespace

tensor read_region(const tile_source& source, const stepped_region& box, tiles_of_call& cache,
                   executor& on) {
  const index_t rank = box.shape.size();
  std::vector<std::vector<run_in_tile>> runs;
  dims counts;
  for (index_t axis = 0; axis < rank; ++axis) {
    runs.push_back(runs_along(axis, box, source.tile_shape()[axis]));
    counts.push_back(static_cast<index_t>(runs.back().size()));
  }
  const index_t tiles = element_count(counts);
  dims at = dims::filled(rank, 0);
  const auto run = [&](index_t axis) -> const run_in_tile& {
    return runs[static_cast<std::size_t>(axis)][static_cast<std::size_t>(at[axis])];
  };
  // Returns a view of the region's elements in the tile that `at` selects, one run for each axis.
  const auto piece = [&] {
    require_not_cancelled(on);
    dims tile;
    for (index_t axis = 0; axis < rank; ++axis) tile.push_back(run(axis).tile);
    tensor view = cache.get(source, tile);
    for (index_t axis = 0; axis < rank; ++axis) {
      const index_t end = run(axis).offset + (run(axis).count - 1) * box.step[axis] + 1;
      view = view.sliced(axis, {.start = run(axis).offset, .stop = end, .step = box.step[axis]});
    }
    return view;
  };
  if (tiles == 1) return piece();

  const tensor result = tensor::empty(box.shape, source.dtype(), &on.pool());
  for (index_t n = 0; n < tiles; ++n) {
    region part;
    for (index_t axis = 0; axis < rank; ++axis) {
      part.start.push_back(run(axis).first);
      part.shape.push_back(run(axis).count);
    }
    copy_elements_here(detail::narrowed(result, part), piece());
    detail::advance(at, counts);
  }
  return result;
}

}  // namespace shale::parallel
