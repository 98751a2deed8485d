#include "parallel/streaming.hpp"

#include <algorithm>
#include <cstdlib>

#include "parallel/executor_state.hpp"
#include "parallel/segments.hpp"
#include "storage/pages.hpp"

namespace shale::parallel {

namespace {

// Of walks that write, which wait for every window's write-back.
constexpr std::size_t written_window_bytes_max = std::size_t{16} << 20;
constexpr index_t written_windows_ahead = 3;

// Written windows whose write-back may still be under way behind the work.
constexpr index_t usual_write_back_lag = 4;

// Of walks that only read. Several readers with a window each keep a device busy; one in pieces
// takes a reader longer.
constexpr std::size_t read_window_bytes_max = std::size_t{2} << 20;
constexpr std::size_t scattered_window_bytes_max = std::size_t{1} << 20;
constexpr std::size_t read_ahead_bytes = std::size_t{16} << 20;

constexpr std::size_t window_bytes_min = std::size_t{256} << 10;

// Faults in bytes without gaps let the kernel read further, in large pages; hardly ever this far.
constexpr std::size_t kernel_read_ahead_bytes = std::size_t{32} << 20;

// A fault maps its page's neighbours too: pieces of a tile are brought in and dropped in granules of
// this size, aligned as the kernel's are, by address; and closer pieces are one.
constexpr index_t fault_granule = index_t{64} << 10;

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

window_walk::window_walk(const plan& over, std::vector<streamed_operand> operands, executor& on,
                         streams_if which)
    : plan_(over), executor_(on) {
  consider(std::move(operands), which);
  if (operands_.empty()) return;
  // Half of the budget is for windows; the rest is the callers' temporaries'.
  memory_.emplace(on, on.memory_bytes() / 2);
  const auto tiles = static_cast<std::size_t>(over.tile_count());
  std::size_t tile_bytes = 0;
  std::size_t tile_span_bytes = 0;
  std::size_t without_gaps_bytes = 0;
  for (auto& state : operands_) {
    const std::size_t span_bytes = ceil_div(state.last - state.dropped, tiles);
    state.forwards = walks_forwards(over, state.operand.index) &&
                     range(state, 0, 1).bytes <= on.memory_bytes() / 8;
    std::size_t used_bytes = 0;
    for_each_segment(state, 0, [&](byte_range piece) {
      used_bytes += detail::align_up(piece.bytes, detail::page_bytes());
    });
    state.gaps = !state.forwards || used_bytes < span_bytes / 4 * 3;
    tile_bytes += state.gaps ? used_bytes : span_bytes;
    if (state.forwards) tile_span_bytes += span_bytes;
    if (!state.gaps) without_gaps_bytes = std::max(without_gaps_bytes, span_bytes);
  }
  size_windows(tile_bytes, tile_span_bytes);
  windows_ = ceil_div(over.tile_count(), tiles_per_window_);
  spread_ = write_back_lag_ + ceil_div(index_t{on.threads()}, tiles_per_window_) + 1;
  if (without_gaps_bytes > 0)
    survey_ahead_ =
        static_cast<index_t>(kernel_read_ahead_bytes / without_gaps_bytes) / tiles_per_window_ + 1;
  left_ = std::vector<std::atomic<index_t>>(static_cast<std::size_t>(windows_));
  found_.resize(static_cast<std::size_t>(windows_));
  for (index_t w = 0; w < windows_; ++w)
    left_[static_cast<std::size_t>(w)].store(end_tile(w) - w * tiles_per_window_,
                                             std::memory_order_relaxed);
  readers_.emplace(windows_, ahead_, [this](index_t window) { read(window); });
}

window_walk::~window_walk() = default;

// Keeps the operands that are mapped files, if they do not fit in the budget.
void window_walk::consider(std::vector<streamed_operand> operands, streams_if which) {
  const bool all = which == streams_if::mapped;
  if (plan_.tile_count() < (all ? 1 : 2)) return;
  std::size_t mapped_bytes = 0;
  const plan::box whole{dims::filled(plan_.rank(), 0), plan_.shape()};
  for (auto& operand : operands) {
    if (operand.bytes.kind() != storage_kind::file) continue;
    const auto [first, last] = plan_.span_bytes(operand.index, whole);
    mapped_bytes += static_cast<std::size_t>(last - first);
    operand_state state{std::move(operand)};
    state.dropped = static_cast<std::size_t>(first);
    state.last = static_cast<std::size_t>(last);
    for (auto& other : operands_) {
      if (!other.operand.bytes.shares_owner_with(state.operand.bytes)) continue;
      other.alone = false;
      state.alone = false;
    }
    writes_ = writes_ || state.operand.written;
    operands_.push_back(std::move(state));
  }
  if (!all && mapped_bytes <= executor_.memory_bytes() / 2) operands_.clear();
}

// A tile brings in `tile_bytes`, but maps up to `tile_span_bytes`, gaps and all, of a file that
// lies in large pages of the cache. Where others hold the budget, one small window at a time
// remains.
void window_walk::size_windows(std::size_t tile_bytes, std::size_t tile_span_bytes) {
  const std::size_t room = memory_->bytes();
  const std::size_t budget = 2 * room;
  const auto windows_of = [&](std::size_t bytes) {
    std::size_t tiles = std::max<std::size_t>(1, bytes / tile_bytes);
    if (tile_span_bytes > 0) tiles = std::min(tiles, budget / 16 / tile_span_bytes);
    return static_cast<index_t>(std::max<std::size_t>(1, tiles));
  };
  const index_t workers = executor_.threads();
  const bool gaps =
      std::any_of(operands_.begin(), operands_.end(), [](const auto& each) { return each.gaps; });
  if (writes_) {
    ahead_ = written_windows_ahead;
    write_back_lag_ = usual_write_back_lag;
    const std::size_t window_bytes =
        std::clamp(room / static_cast<std::size_t>(ahead_ + 2 + write_back_lag_), window_bytes_min,
                   written_window_bytes_max);
    tiles_per_window_ = windows_of(window_bytes);
    if (!gaps || tile_bytes <= window_bytes) return;
  } else {
    tiles_per_window_ = windows_of(std::clamp(
        room / 16, window_bytes_min, gaps ? scattered_window_bytes_max : read_window_bytes_max));
  }
  // Windows of at least one tile each: so many fit, and the workers are in so many.
  const std::size_t window_bytes = static_cast<std::size_t>(tiles_per_window_) * tile_bytes;
  std::size_t fitting = room / window_bytes;
  if (gaps && tile_span_bytes > 0)
    fitting =
        std::min(fitting, budget / (static_cast<std::size_t>(tiles_per_window_) * tile_span_bytes));
  const auto fitting_windows = static_cast<index_t>(fitting);
  write_back_lag_ = 0;
  ahead_ = std::clamp<index_t>(fitting_windows - ceil_div(workers, tiles_per_window_) - 1, 0,
                               static_cast<index_t>(read_ahead_bytes / window_bytes));
  if (fitting_windows * tiles_per_window_ < workers)
    workers_max_ = static_cast<int>(std::max<index_t>(1, fitting_windows * tiles_per_window_));
}

byte_range window_walk::range(const operand_state& of, index_t first_tile,
                              index_t last_tile) const {
  index_t first = 0;
  index_t last = 0;
  for (index_t tile = first_tile; tile < last_tile; ++tile) {
    const auto [a, b] = plan_.span_bytes(of.operand.index, plan_.tile(tile));
    first = tile == first_tile ? a : std::min(first, a);
    last = tile == first_tile ? b : std::max(last, b);
  }
  return {static_cast<std::size_t>(first), static_cast<std::size_t>(last - first)};
}

byte_range window_walk::range(const operand_state& of, index_t window) const {
  return range(of, window * tiles_per_window_, end_tile(window));
}

index_t window_walk::end_tile(index_t window) const {
  return std::min((window + 1) * tiles_per_window_, plan_.tile_count());
}

// The pieces of memory that a tile touches; of an operand that is not walked forwards, in whole
// granules.
template <class Visit>
void window_walk::for_each_segment(const operand_state& of, index_t tile, Visit visit) const {
  const auto box = plan_.tile(tile);
  const index_t granule = of.forwards ? 1 : fault_granule;
  const auto address = reinterpret_cast<std::uintptr_t>(of.operand.bytes.data());
  const auto skew = static_cast<index_t>(address % static_cast<std::uintptr_t>(granule));
  const auto end_of_bytes = static_cast<index_t>(of.operand.bytes.size_bytes());
  parallel::for_each_segment(
      box.shape, plan_.strides_bytes(of.operand.index),
      plan_.span_bytes(of.operand.index, box).first,
      static_cast<index_t>(plan_.item_bytes(of.operand.index)), fault_granule,
      [&](index_t begin, index_t end) {
        begin = std::max<index_t>((begin + skew) / granule * granule - skew, 0);
        end = std::min(ceil_div(end + skew, granule) * granule - skew, end_of_bytes);
        visit(byte_range{static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)});
      });
}

template <class Visit>
void window_walk::for_each_segment_of_window(const operand_state& of, index_t window,
                                             Visit visit) const {
  for (index_t tile = window * tiles_per_window_; tile < end_tile(window); ++tile)
    for_each_segment(of, tile, visit);
}

window_walk::found window_walk::look_up(index_t window) const {
  found result;
  for (const auto& of : operands_) {
    if (of.operand.written) continue;
    std::size_t wanted = 0;
    std::size_t resident = 0;
    const auto count = [&](byte_range piece) {
      wanted += piece.bytes;
      resident += of.operand.bytes.resident_bytes(piece);
    };
    if (!of.forwards) {
      result.resident = false;
      continue;
    }
    count(range(of, window));
    if (of.gaps && resident > 0) {
      result.gaps_empty = false;
      wanted = resident = 0;
      for_each_segment_of_window(of, window, count);
    }
    // Nine tenths: the pages at the ends are shared with windows already read.
    if (resident < wanted / 10 * 9) result.resident = false;
  }
  return result;
}

void window_walk::survey(index_t window) {
  const std::lock_guard lock(survey_mutex_);
  for (; surveyed_ < std::min(window + 1 + survey_ahead_, windows_); ++surveyed_)
    found_[static_cast<std::size_t>(surveyed_)] = look_up(surveyed_);
}

// Without gaps the faults themselves are the fastest way to read: they let the kernel take large
// pages, which hints never do.
void window_walk::read(index_t window) {
  survey(window);
  for (const auto& of : operands_) {
    if (of.operand.written) continue;
    if (!of.gaps) {
      of.operand.bytes.populate(range(of, window));
      continue;
    }
    if (!found_[static_cast<std::size_t>(window)].resident)
      for_each_segment_of_window(of, window,
                                 [&](byte_range piece) { of.operand.bytes.prefetch(piece); });
    for_each_segment_of_window(of, window,
                               [&](byte_range piece) { of.operand.bytes.populate(piece); });
  }
}

void window_walk::prepare_stores(index_t window) {
  for (const auto& of : operands_) {
    if (!of.operand.written) continue;
    const auto populate = [&](byte_range piece) {
      of.operand.bytes.populate(piece, populate_for::store);
    };
    if (of.gaps) for_each_segment_of_window(of, window, populate);
    else populate(range(of, window));
  }
}

window_walk::tile_visit::tile_visit(window_walk& of, index_t tile) : of_(of), tile_(tile) {
  try {
    of.begin(tile);
  } catch (...) {
    of.abandon();
    throw;
  }
}

window_walk::tile_visit::~tile_visit() {
  if (!ended_) of_.abandon();
}

void window_walk::tile_visit::end() {
  of_.end(tile_);
  ended_ = true;
}

// Whoever has the first tile that has not ended is never held up: workers take them in order.
void window_walk::await_turn(index_t window) {
  if (window - retired_.load(std::memory_order_acquire) < spread_) return;
  std::unique_lock lock(behind_mutex_);
  retirement_.wait(lock, [&] { return abandoned_ || window - retired_ < spread_; });
}

void window_walk::abandon() noexcept {
  if (!streams()) return;
  {
    const std::lock_guard lock(behind_mutex_);
    abandoned_ = true;
  }
  retirement_.notify_all();
}

void window_walk::begin(index_t tile) {
  if (!streams()) return;
  const index_t window = tile / tiles_per_window_;
  await_turn(window);
  if (prepared_.load(std::memory_order_acquire) > window) return;
  readers_->wait_for(window);
  const std::lock_guard lock(store_mutex_);
  for (index_t w = prepared_.load(std::memory_order_relaxed); w <= window; ++w) {
    readers_->wait_for(w);
    prepare_stores(w);
    executor_.state().count.windows.fetch_add(1, std::memory_order_relaxed);
    prepared_.store(w + 1, std::memory_order_release);
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
    if (!other.forwards || !other.operand.bytes.shares_owner_with(of.operand.bytes)) continue;
    const std::size_t theirs = needed_from(other);
    if (theirs < bound && bound - theirs < near_bytes) bound = theirs;
  }
  bound = bound > base ? bound - base : 0;
  if (bound < of.last) {
    // In the file, as large pages of the cache lie.
    const std::size_t skew = of.operand.bytes.file_offset().value_or(0) % drop_granule;
    bound = std::max((bound + skew) / drop_granule * drop_granule, skew) - skew;
  }
  if (bound <= of.dropped) return;
  of.operand.bytes.evict({of.dropped, bound - of.dropped}, how);
  of.dropped = bound;
}

void window_walk::retire(index_t window) {
  const found before = found_[static_cast<std::size_t>(window)];
  const auto how = before.resident ? eviction::process : eviction::system;
  for (auto& of : operands_) {
    const auto evict = [&](byte_range piece) { of.operand.bytes.evict(piece, how); };
    if (!of.forwards) {
      for_each_segment_of_window(of, window, [&](byte_range piece) {
        if (of.operand.written) of.operand.bytes.finish_writeback(piece);
        of.operand.bytes.evict(piece, eviction::process);
      });
      continue;
    }
    if (of.operand.written) of.operand.bytes.finish_writeback(range(of, window));
    if (!of.gaps) {
      drop_behind(of, window, how);
      continue;
    }
    if (how == eviction::system && of.alone) {
      if (before.gaps_empty && !of.operand.written) evict(range(of, window));
      else for_each_segment_of_window(of, window, evict);
    }
    drop_behind(of, window, eviction::process);
  }
  executor_.state().count.windows_dropped.fetch_add(1, std::memory_order_relaxed);
}

void window_walk::end(index_t tile) {
  if (!streams()) return;
  const index_t window = tile / tiles_per_window_;
  if (left_[static_cast<std::size_t>(window)].fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  const std::lock_guard lock(behind_mutex_);
  for (const auto& of : operands_)
    if (of.operand.written && of.forwards) of.operand.bytes.start_writeback(range(of, window));
  // Windows end nearly in order; retire the finished prefix, less the lag of writers.
  index_t finished = retired_;
  while (finished < windows_ &&
         left_[static_cast<std::size_t>(finished)].load(std::memory_order_acquire) == 0)
    ++finished;
  for (; retired_ < finished - write_back_lag_; ++retired_) retire(retired_);
  retirement_.notify_all();
}

void window_walk::finish() {
  if (!streams()) return;
  const std::lock_guard lock(behind_mutex_);
  for (; retired_ < windows_; ++retired_) retire(retired_);
}

}  // namespace shale::parallel
