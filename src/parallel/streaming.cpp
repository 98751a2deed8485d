#include "parallel/streaming.hpp"

#include <algorithm>
#include <cstdlib>

#include "parallel/executor_state.hpp"

namespace shale::parallel {

namespace {

constexpr std::size_t window_bytes_max = std::size_t{16} << 20;
constexpr std::size_t window_bytes_min = std::size_t{256} << 10;
constexpr index_t windows_ahead = 3;

// Written windows whose write-back may still be under way behind the work.
constexpr index_t usual_write_back_lag = 4;

// A fault maps its page's neighbours too: pieces of a tile are brought in and dropped in aligned
// granules of this size, and closer pieces are one.
constexpr std::size_t fault_granule = std::size_t{64} << 10;

// Forward walks of one file that are at most this far apart share pages; the last one drops them.
constexpr std::size_t near_bytes = std::size_t{64} << 20;

// Dropped ranges end at multiples of this, so that huge pages go whole.
constexpr std::size_t drop_granule = std::size_t{2} << 20;

// Whether ascending tile numbers visit ascending bytes: from the fastest axis outwards, each
// stride steps over everything inside it.
bool walks_forwards(const plan& over, int which) {
  const dims& strides = over.strides_bytes(which);
  index_t reach = static_cast<index_t>(over.item_bytes(which));
  for (index_t axis = over.rank() - 1; axis >= 0; --axis) {
    if (over.shape()[axis] == 1) continue;
    if (strides[axis] < reach) return false;
    reach = strides[axis] * over.shape()[axis];
  }
  return true;
}

}  // namespace

window_walk::window_walk(const plan& over, std::vector<streamed_operand> operands, executor& on)
    : plan_(over), executor_(on) {
  std::size_t mapped_bytes = 0;
  const plan::box whole{dims::filled(over.rank(), 0), over.shape()};
  for (auto& operand : operands) {
    const bool file = operand.bytes.kind() == storage_kind::file;
    if (!file || over.size() == 0) continue;
    const auto [first, last] = over.span_bytes(operand.index, whole);
    mapped_bytes += static_cast<std::size_t>(last - first);
    operand_state state{std::move(operand)};
    state.nested = walks_forwards(over, state.operand.index);
    state.dropped = static_cast<std::size_t>(first);
    state.last = static_cast<std::size_t>(last);
    operands_.push_back(std::move(state));
  }
  const std::size_t budget = on.memory_bytes();
  if (mapped_bytes <= budget / 2 || over.tile_count() < 2) {
    operands_.clear();
    return;
  }
  ahead_ = windows_ahead;
  write_back_lag_ = usual_write_back_lag;
  // Half of the budget for mapped windows; the rest is the callers' temporaries'.
  const auto in_flight = static_cast<std::size_t>(ahead_ + 2 + write_back_lag_);
  const std::size_t window_bytes =
      std::clamp(budget / 2 / in_flight, window_bytes_min, window_bytes_max);
  const auto tile_bytes =
      std::max<std::size_t>(1, mapped_bytes / static_cast<std::size_t>(over.tile_count()));
  tiles_per_window_ = std::max<index_t>(1, static_cast<index_t>(window_bytes / tile_bytes));
  // An operand whose window spans far more than it touches is handled piece by piece instead; then
  // whole granules count, not the bytes that are used of them.
  std::size_t scattered_bytes = 0;
  for (auto& state : operands_) {
    state.nested = state.nested && range(state, 0).bytes <= budget / 8;
    if (!state.nested)
      for_each_segment(state, 0, [&](byte_range piece) { scattered_bytes += piece.bytes; });
  }
  if (scattered_bytes > tile_bytes)
    tiles_per_window_ = std::max<index_t>(1, static_cast<index_t>(window_bytes / scattered_bytes));
  if (scattered_bytes > window_bytes) {
    // Not even one tile fits a window: nothing ahead and nothing behind, and only as many workers
    // as the budget has tiles for.
    ahead_ = 0;
    write_back_lag_ = 0;
    workers_max_ = std::max(1, static_cast<int>(budget / 2 / scattered_bytes));
  }
  windows_ = ceil_div(over.tile_count(), tiles_per_window_);
  left_ = std::vector<std::atomic<index_t>>(static_cast<std::size_t>(windows_));
  was_resident_.assign(static_cast<std::size_t>(windows_), 0);
  for (index_t w = 0; w < windows_; ++w)
    left_[static_cast<std::size_t>(w)].store(
        std::min(tiles_per_window_, over.tile_count() - w * tiles_per_window_),
        std::memory_order_relaxed);
}

window_walk::~window_walk() = default;

byte_range window_walk::range(const operand_state& of, index_t window) const {
  const index_t first_tile = window * tiles_per_window_;
  const index_t last_tile = std::min(first_tile + tiles_per_window_, plan_.tile_count());
  index_t first = 0;
  index_t last = 0;
  for (index_t tile = first_tile; tile < last_tile; ++tile) {
    const auto [a, b] = plan_.span_bytes(of.operand.index, plan_.tile(tile));
    first = tile == first_tile ? a : std::min(first, a);
    last = tile == first_tile ? b : std::max(last, b);
  }
  return {static_cast<std::size_t>(first), static_cast<std::size_t>(last - first)};
}

// The pieces of memory, in whole granules, that a tile of a scattered operand touches.
template <class Visit>
void window_walk::for_each_segment(const operand_state& of, index_t tile, Visit visit) const {
  const auto box = plan_.tile(tile);
  const dims& strides = plan_.strides_bytes(of.operand.index);
  // Walk axes from the widest stride to the narrowest; the narrow ones that leave no gap worth a
  // call of its own form the segment.
  dims order;
  for (index_t axis = 0; axis < plan_.rank(); ++axis)
    if (box.shape[axis] > 1 && strides[axis] != 0) order.push_back(axis);
  std::sort(order.begin(), order.end(),
            [&](index_t a, index_t b) { return std::abs(strides[a]) > std::abs(strides[b]); });
  index_t first = plan_.span_bytes(of.operand.index, box).first;
  index_t bytes = static_cast<index_t>(plan_.item_bytes(of.operand.index));
  while (!order.empty() &&
         std::abs(strides[order.back()]) <= bytes + static_cast<index_t>(fault_granule)) {
    bytes += std::abs(strides[order.back()]) * (box.shape[order.back()] - 1);
    order.pop_back();
  }
  dims at = dims::filled(order.size(), 0);
  for (;;) {
    index_t position = first;
    for (index_t i = 0; i < order.size(); ++i) position += at[i] * std::abs(strides[order[i]]);
    const auto start = static_cast<std::size_t>(position) / fault_granule * fault_granule;
    const auto end = static_cast<std::size_t>(position + bytes);
    visit(byte_range{start, std::min(ceil_div(end, fault_granule) * fault_granule,
                                     of.operand.bytes.size_bytes()) -
                                start});
    index_t i = order.size() - 1;
    for (; i >= 0; --i) {
      if (++at[i] < box.shape[order[i]]) break;
      at[i] = 0;
    }
    if (i < 0) return;
  }
}

void window_walk::prefetch(index_t window) {
  bool resident = true;
  for (const auto& of : operands_) {
    if (of.operand.written) continue;
    if (of.nested) {
      const auto bytes = range(of, window);
      // Nine tenths: the pages at the ends are shared with windows already read.
      resident = resident && of.operand.bytes.resident_bytes(bytes) >= bytes.bytes / 10 * 9;
      if (!resident) of.operand.bytes.prefetch(bytes);
    } else {
      resident = false;
      const index_t first = window * tiles_per_window_;
      for (index_t t = first; t < std::min(first + tiles_per_window_, plan_.tile_count()); ++t)
        for_each_segment(of, t, [&](byte_range piece) { of.operand.bytes.prefetch(piece); });
    }
  }
  was_resident_[static_cast<std::size_t>(window)] = resident;
}

void window_walk::populate(index_t window) {
  for (const auto& of : operands_) {
    const auto use = of.operand.written ? populate_for::store : populate_for::load;
    if (of.nested) {
      of.operand.bytes.populate(range(of, window), use);
    } else {
      const index_t first = window * tiles_per_window_;
      for (index_t t = first; t < std::min(first + tiles_per_window_, plan_.tile_count()); ++t)
        for_each_segment(of, t, [&](byte_range piece) { of.operand.bytes.populate(piece, use); });
    }
  }
}

void window_walk::begin(index_t tile) {
  if (!streams()) return;
  const index_t window = tile / tiles_per_window_;
  if (populated_.load(std::memory_order_acquire) > window) return;
  const std::lock_guard lock(ahead_mutex_);
  for (index_t w = populated_.load(std::memory_order_relaxed); w <= window; ++w) {
    for (; prefetched_ < std::min(w + 1 + ahead_, windows_); ++prefetched_) prefetch(prefetched_);
    populate(w);
    executor_.state().count.windows.fetch_add(1, std::memory_order_relaxed);
    populated_.store(w + 1, std::memory_order_release);
  }
}

// Gives back what lies before the window after `retired`, except what a walk of the same file close
// behind still needs.
void window_walk::drop_behind(operand_state& of, index_t retired, eviction how) {
  // Positions in the owner, so that different slices of one file compare.
  const auto needed_from = [&](const operand_state& walk) {
    const std::size_t from = retired + 1 < windows_ ? range(walk, retired + 1).offset : walk.last;
    return walk.operand.bytes.owner_offset() + from;
  };
  const std::size_t base = of.operand.bytes.owner_offset();
  std::size_t bound = needed_from(of);
  for (const auto& other : operands_) {
    if (!other.nested || !other.operand.bytes.shares_owner_with(of.operand.bytes)) continue;
    const std::size_t theirs = needed_from(other);
    if (theirs < bound && bound - theirs < near_bytes) bound = theirs;
  }
  bound = bound > base ? bound - base : 0;
  if (bound < of.last) bound = bound / drop_granule * drop_granule;
  if (bound <= of.dropped) return;
  of.operand.bytes.evict({of.dropped, bound - of.dropped}, how);
  of.dropped = bound;
}

void window_walk::retire(index_t window) {
  const auto how =
      was_resident_[static_cast<std::size_t>(window)] ? eviction::process : eviction::system;
  for (auto& of : operands_) {
    if (of.nested) {
      const auto bytes = range(of, window);
      if (of.operand.written) of.operand.bytes.finish_writeback(bytes);
      drop_behind(of, window, how);
    } else {
      const index_t first = window * tiles_per_window_;
      for (index_t t = first; t < std::min(first + tiles_per_window_, plan_.tile_count()); ++t)
        for_each_segment(of, t, [&](byte_range piece) {
          if (of.operand.written) of.operand.bytes.finish_writeback(piece);
          of.operand.bytes.evict(piece, eviction::process);
        });
    }
  }
  executor_.state().count.windows_dropped.fetch_add(1, std::memory_order_relaxed);
}

void window_walk::end(index_t tile) {
  if (!streams()) return;
  const index_t window = tile / tiles_per_window_;
  if (left_[static_cast<std::size_t>(window)].fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  const std::lock_guard lock(behind_mutex_);
  bool writes = false;
  for (const auto& of : operands_) {
    if (!of.operand.written) continue;
    writes = true;
    if (of.nested) of.operand.bytes.start_writeback(range(of, window));
  }
  // Windows end nearly in order; retire the finished prefix, less the lag of writers.
  index_t finished = retired_;
  while (finished < windows_ &&
         left_[static_cast<std::size_t>(finished)].load(std::memory_order_acquire) == 0)
    ++finished;
  const index_t lag = writes ? write_back_lag_ : 0;
  for (; retired_ < finished - lag; ++retired_) retire(retired_);
}

void window_walk::finish() {
  if (!streams()) return;
  const std::lock_guard lock(behind_mutex_);
  for (; retired_ < windows_; ++retired_) retire(retired_);
}

}  // namespace shale::parallel
