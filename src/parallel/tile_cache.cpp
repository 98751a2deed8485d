#include "parallel/tile_cache.hpp"

#include <algorithm>
#include <vector>

#include "parallel/copy.hpp"
#include "parallel/load_tile.hpp"

namespace shale::parallel {

tensor tile_cache::get(const tile_source& source, const dims& tile) {
  const key wanted{&source, tile};
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto found = entries_.find(wanted);
    if (found == entries_.end()) break;
    if (found->second.loaded) {
      ages_.splice(ages_.end(), ages_, found->second.age);
      return found->second.values;
    }
    loaded_.wait(lock);  // and look again: the load may have failed
  }
  const auto at = entries_.emplace(wanted, entry{}).first;
  at->second.age = ages_.insert(ages_.end(), wanted);
  lock.unlock();

  tensor values;
  try {
    const region where = tile_region(source.shape(), source.tile_shape(), tile);
    values = tensor::empty(where.shape, source.dtype(), &executor_.pool());
    load_tile(source, tile, values, executor_);
  } catch (...) {
    lock.lock();
    ages_.erase(at->second.age);
    entries_.erase(at);
    loaded_.notify_all();
    throw;
  }
  lock.lock();
  at->second.values = values;
  at->second.loaded = true;
  held_bytes_ += values.size_bytes();
  shrink();
  loaded_.notify_all();
  return values;
}

void tile_cache::shrink() {
  for (auto age = ages_.begin(); age != ages_.end() && held_bytes_ > capacity_bytes_;) {
    const auto at = entries_.find(*age);
    // One handle is the cache's own; any other is a kernel's.
    if (!at->second.loaded || at->second.values.storage().use_count() > 1) {
      ++age;
      continue;
    }
    held_bytes_ -= at->second.values.size_bytes();
    entries_.erase(at);
    age = ages_.erase(age);
  }
}

namespace {

/// Elements of a stepped region, along one axis, that lie in one tile.
struct run_in_tile {
  index_t tile;
  index_t first;  // counted within the region
  index_t count;
  index_t offset;  // of the first within the tile
};

std::vector<run_in_tile> runs_along(index_t axis, const stepped_region& where, index_t extent) {
  std::vector<run_in_tile> runs;
  const index_t step = where.step[axis];
  for (index_t first = 0; first < where.shape[axis]; first += runs.back().count) {
    const index_t position = where.start[axis] + first * step;
    const index_t offset = position % extent;
    const index_t inside = (extent - offset - 1) / step + 1;
    runs.push_back({position / extent, first, std::min(inside, where.shape[axis] - first), offset});
  }
  return runs;
}

}  // namespace

tensor read_region(const tile_source& source, const stepped_region& where, tile_cache& through,
                   executor& on) {
  const index_t rank = where.shape.size();
  std::vector<std::vector<run_in_tile>> runs;
  index_t tiles = 1;
  for (index_t axis = 0; axis < rank; ++axis) {
    runs.push_back(runs_along(axis, where, source.tile_shape()[axis]));
    tiles *= static_cast<index_t>(runs.back().size());
  }
  dims at = dims::filled(rank, 0);
  const auto run = [&](index_t axis) -> const run_in_tile& {
    return runs[static_cast<std::size_t>(axis)][static_cast<std::size_t>(at[axis])];
  };
  // The wanted elements of the tile that `at` names.
  const auto piece = [&] {
    dims tile;
    for (index_t axis = 0; axis < rank; ++axis) tile.push_back(run(axis).tile);
    tensor view = through.get(source, tile);
    for (index_t axis = 0; axis < rank; ++axis) {
      const index_t end = run(axis).offset + (run(axis).count - 1) * where.step[axis] + 1;
      view = view.sliced(axis, {.start = run(axis).offset, .stop = end, .step = where.step[axis]});
    }
    return view;
  };
  if (tiles == 1) return piece();

  const tensor result = tensor::empty(where.shape, source.dtype(), &on.pool());
  for (index_t n = 0; n < tiles; ++n) {
    tensor to = result;
    for (index_t axis = 0; axis < rank; ++axis)
      to = to.narrow(axis, run(axis).first, run(axis).count);
    copy_elements_here(to, piece());
    for (index_t axis = rank - 1; axis >= 0; --axis) {
      if (++at[axis] < static_cast<index_t>(runs[static_cast<std::size_t>(axis)].size())) break;
      at[axis] = 0;
    }
  }
  return result;
}

}  // namespace shale::parallel
