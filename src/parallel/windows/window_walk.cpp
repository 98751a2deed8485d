#include "parallel/windows/window_walk.hpp"

#include <algorithm>

#include "parallel/executor/executor_state.hpp"
#include "parallel/mapped/mapped_bytes.hpp"
#include "parallel/mapped/stored_checksums.hpp"

namespace shale::parallel {

namespace {

// Returns the operands that are streamed: those that are mapped files, unless half of the budget
// holds all of them.
std::vector<streamed_memory> choose_streamed(const plan& loop_plan,
                                             const std::vector<streamed_operand>& operands,
                                             const executor& on, streams_if condition) {
  const bool all = condition == streams_if::mapped;
  if (loop_plan.tile_count() < (all ? 1 : 2)) return {};
  mapped_bytes sum;
  const region all_elements = region::all(loop_plan.shape());
  for (const auto& operand : operands) {
    const auto [first, last] = loop_plan.span_bytes(operand.index, all_elements);
    sum.add(operand.bytes, static_cast<std::size_t>(last - first));
  }
  if (!all && !sum.exceed_half_of_budget(on)) return {};
  std::vector<streamed_memory> result;
  for (const auto& operand : operands)
    if (is_mapped(operand.bytes)) result.emplace_back(operand, loop_plan, on.memory_bytes());
  return result;
}

// Compares the stored checksums of what some tiles read of an operand.
void compare_checksums(const streamed_memory& operand, tile_numbers tiles, const executor& on) {
  const storage& bytes = operand.bytes();
  if (!compares_checksums(on, bytes)) return;
  if (!operand.has_gaps()) return bytes.compare_checksums(operand.range(tiles));
  operand.for_each_piece(tiles, [&](byte_range piece) { bytes.compare_checksums(piece); });
}

}  // namespace

window_walk::window_walk(const plan& loop_plan, const std::vector<streamed_operand>& operands,
                         executor& on, streams_if condition)
    : executor_(on), operands_(choose_streamed(loop_plan, operands, on, condition)) {
  // The checksums of operands that are not streamed are compared now, those of the others window by
  // window.
  for (const auto& operand : operands) {
    const bool streamed = streams() && is_mapped(operand.bytes);
    if (!operand.written && !streamed && compares_checksums(on, operand.bytes))
      compare_checksums_of(loop_plan, operand.index, operand.bytes, on);
  }
  if (!streams()) return;
  // Half of the budget is for windows; the other half is for temporaries.
  memory_.emplace(on, on.memory_bytes() / 2);
  const window_sizes chosen = sizes(loop_plan);
  windows_ = {.tile_count = loop_plan.tile_count(), .tiles_per_window = chosen.tiles_per_window};
  workers_max_ = chosen.workers_max;
  survey_.emplace(operands_, windows_);
  retirement_.emplace(
      operands_, *survey_, windows_,
      window_retirement::limits{.write_back_lag = chosen.write_back_lag, .spread = chosen.spread},
      state_of(on).count);
  with_readers_.emplace();
  readers_.emplace(windows_.count(), chosen.ahead, [this](index_t window) { read(window); });
}

window_walk::~window_walk() = default;

window_sizes window_walk::sizes(const plan& loop_plan) const {
  window_request request{.reserved_bytes = memory_->bytes(),
                         .workers = std::min<index_t>(executor_.threads(), loop_plan.tile_count())};
  for (const auto& operand : operands_) {
    request.tile_bytes += operand.tile_bytes();
    if (operand.forwards()) request.tile_span_bytes += operand.span_bytes();
    request.writes = request.writes || operand.written();
    request.gaps = request.gaps || operand.has_gaps();
  }
  return choose_window_sizes(request);
}

// An operand without gaps is read fastest by page faults, without a prefetch before them: the
// kernel then uses large pages, which it never does for prefetches.
void window_walk::read(index_t window) {
  const executor::scope within(executor_);  // readers have threads of their own
  survey_->survey_up_to(window);
  const tile_numbers tiles = windows_.tiles(window);
  for (const auto& operand : operands_) {
    if (operand.written()) continue;
    const storage& bytes = operand.bytes();
    compare_checksums(operand, tiles, executor_);
    if (!operand.has_gaps()) {
      bytes.populate(operand.range(tiles));
      continue;
    }
    if (!survey_->at(window).resident)
      operand.for_each_piece(tiles, [&](byte_range piece) { bytes.prefetch(piece); });
    operand.for_each_piece(tiles, [&](byte_range piece) { bytes.populate(piece); });
  }
}

void window_walk::prepare_stores(index_t window) {
  const tile_numbers tiles = windows_.tiles(window);
  for (const auto& operand : operands_) {
    if (!operand.written()) continue;
    const auto populate = [&](byte_range piece) {
      operand.bytes().populate(piece, populate_for::store);
    };
    if (operand.has_gaps()) operand.for_each_piece(tiles, populate);
    else populate(operand.range(tiles));
  }
}

window_walk::tile_visit::tile_visit(window_walk& walk, index_t tile) : walk_(walk), tile_(tile) {
  try {
    walk.begin(tile);
  } catch (...) {
    walk.tile_failed();
    throw;
  }
}

window_walk::tile_visit::~tile_visit() {
  if (!ended_) walk_.tile_failed();
}

void window_walk::tile_visit::end() {
  if (walk_.streams()) walk_.retirement_->end_tile(walk_.windows_.of_tile(tile_));
  ended_ = true;
}

void window_walk::tile_failed() noexcept {
  if (streams()) retirement_->tile_failed();
}

// Makes a tile's window ready, in two steps: its pages that are read are populated by the readers,
// and those that are written by the first worker that comes. Windows become ready in ascending
// order, so one number, `prepared_`, says which ones are. A worker may be the first to come to
// several windows, because tiles are claimed in order but begin in any order: it prepares all
// windows up to its own.
void window_walk::begin(index_t tile) {
  if (!streams()) return;
  const index_t window = windows_.of_tile(tile);
  retirement_->await_turn(window);
  if (prepared_.load(std::memory_order_acquire) > window) return;
  // The readers' limit follows the highest number that is waited for, read or not (readers.3), and
  // reads of lower numbers have begun before. So nearly all waiting happens here, without the lock.
  // The waits below, under the lock, are short, because earlier windows are read by then; they pass
  // on errors.
  readers_->wait_for(window);
  const std::lock_guard lock(store_mutex_);
  for (index_t w = prepared_.load(std::memory_order_relaxed); w <= window; ++w) {
    readers_->wait_for(w);
    prepare_stores(w);
    state_of(executor_).count.window();
    prepared_.store(w + 1, std::memory_order_release);
  }
}

void window_walk::finish() {
  if (streams()) retirement_->finish();
}

}  // namespace shale::parallel
