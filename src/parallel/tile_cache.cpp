#include "parallel/tile_cache.hpp"

#include <algorithm>

#include "parallel/copy.hpp"
#include "parallel/executor_state.hpp"

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
    source.load(tile, values);
    executor_.state().count.tiles_decoded.fetch_add(1, std::memory_order_relaxed);
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

tensor read_region(const tile_source& source, const region& where, tile_cache& through,
                   executor& on) {
  const dims& extent = source.tile_shape();
  dims first, count;
  index_t tiles = 1;
  for (index_t axis = 0; axis < where.shape.size(); ++axis) {
    const index_t low = where.start[axis] / extent[axis];
    const index_t high = (where.start[axis] + where.shape[axis] - 1) / extent[axis];
    first.push_back(low);
    count.push_back(high - low + 1);
    tiles *= count.back();
  }
  // `piece` of a tile, as a view of `values`, which begins at `origin` of the source.
  const auto part = [](const tensor& values, const region& piece, const dims& origin) {
    tensor view = values;
    for (index_t axis = 0; axis < piece.shape.size(); ++axis)
      view = view.narrow(axis, piece.start[axis] - origin[axis], piece.shape[axis]);
    return view;
  };
  const auto origin_of = [&](const dims& tile) {
    return tile_region(source.shape(), extent, tile).start;
  };
  if (tiles == 1) return part(through.get(source, first), where, origin_of(first));

  const tensor result = tensor::empty(where.shape, source.dtype(), &on.pool());
  dims at = dims::filled(count.size(), 0);
  for (index_t n = 0; n < tiles; ++n) {
    dims tile = first;
    for (index_t axis = 0; axis < at.size(); ++axis) tile[axis] += at[axis];
    const region covered = tile_region(source.shape(), extent, tile);
    region piece{dims::filled(at.size(), 0), dims::filled(at.size(), 0)};
    for (index_t axis = 0; axis < at.size(); ++axis) {
      piece.start[axis] = std::max(covered.start[axis], where.start[axis]);
      piece.shape[axis] = std::min(covered.start[axis] + covered.shape[axis],
                                   where.start[axis] + where.shape[axis]) -
                          piece.start[axis];
    }
    copy_elements_here(part(result, piece, where.start),
                       part(through.get(source, tile), piece, covered.start));
    for (index_t axis = at.size() - 1; axis >= 0; --axis) {
      if (++at[axis] < count[axis]) break;
      at[axis] = 0;
    }
  }
  return result;
}

}  // namespace shale::parallel
