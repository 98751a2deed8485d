#include "parallel/windows/window_retirement.hpp"

namespace shale::parallel {

window_retirement::window_retirement(std::span<const streamed_memory> operands,
                                     const page_survey& survey, window_list windows, limits bounds,
                                     counters& count)
    : operands_(operands),
      windows_(windows),
      bounds_(bounds),
      count_(count),
      left_(static_cast<std::size_t>(windows.count())),
      pages_(operands, survey, windows) {
  for (index_t window = 0; window < windows.count(); ++window) {
    const tile_numbers tiles = windows.tiles(window);
    left_[static_cast<std::size_t>(window)].store(tiles.end - tiles.first,
                                                  std::memory_order_relaxed);
  }
}

// This cannot block all workers: tiles are claimed in order, so the worker with the oldest tile
// that has not ended is in the oldest window that has not retired, and does not wait.
void window_retirement::await_turn(index_t window) {
  if (window - retired_.load(std::memory_order_acquire) < bounds_.spread) return;
  std::unique_lock lock(mutex_);
  retirement_.wait(lock, [&] { return failed_ || window - retired_ < bounds_.spread; });
}

void window_retirement::tile_failed() noexcept {
  {
    const std::lock_guard lock(mutex_);
    failed_ = true;
  }
  retirement_.notify_all();
}

void window_retirement::end_tile(index_t window) {
  if (left_[static_cast<std::size_t>(window)].fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  const std::lock_guard lock(mutex_);
  for (const auto& operand : operands_)
    if (operand.written() && operand.forwards())
      operand.bytes().start_writeback(operand.range(windows_.tiles(window)));
  // Windows end in nearly ascending order. Retire all windows before the first unfinished one,
  // except the last few, whose write-back has just begun.
  index_t finished = retired_;
  while (finished < windows_.count() &&
         left_[static_cast<std::size_t>(finished)].load(std::memory_order_acquire) == 0)
    ++finished;
  for (; retired_ < finished - bounds_.write_back_lag; ++retired_) retire();
  retirement_.notify_all();
}

void window_retirement::finish() {
  const std::lock_guard lock(mutex_);
  for (; retired_ < windows_.count(); ++retired_) retire();
}

void window_retirement::retire() {
  pages_.drop(retired_);
  count_.window_dropped();
}

}  // namespace shale::parallel
