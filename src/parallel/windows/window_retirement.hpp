// Decides when windows retire: the write-back of a window begins when its last tile has ended, and
// its pages are dropped a few windows later. It also holds back workers that would begin a window
// far ahead of the oldest one that has not retired. So the work cannot get far ahead of a slow
// device, or of a worker that was put to sleep, and few windows are resident at once (stream.4).
//
// A worker that ends the last tile of a window retires windows under the lock of this class, and
// may wait for the device there. No other lock is held meanwhile, so reading ahead of the work goes
// on.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <span>
#include <vector>

#include "parallel/executor/counters.hpp"
#include "parallel/windows/dropped_pages.hpp"
#include "parallel/windows/streamed_memory.hpp"
#include "parallel/windows/window_list.hpp"

namespace shale::parallel {

/// Threads  any, at any time
class window_retirement {
 public:
  struct limits {
    index_t write_back_lag;  ///< windows whose write-back may still be running
    index_t spread;  ///< the most windows that have begun but not retired; more than the lag
  };

  /// The operands, the survey and the counters must outlive this object.
  window_retirement(std::span<const streamed_memory> operands, const page_survey& survey,
                    window_list windows, limits bounds, counters& count);

  /// Waits until the window may begin, or until a tile has failed.
  void await_turn(index_t window);

  /// A tile of the window has ended. If it was the last one, its write-back begins, and older
  /// windows retire. Throws io
  void end_tile(index_t window);

  /// A tile has failed and will never end: nobody waits for it any more.
  void tile_failed() noexcept;

  /// After the last tile: retires the remaining windows. Throws io
  void finish();

 private:
  void retire();

  const std::span<const streamed_memory> operands_;
  const window_list windows_;
  const limits bounds_;
  counters& count_;
  std::vector<std::atomic<index_t>> left_;  // by window number: tiles that have not ended
  std::atomic<index_t> retired_ = 0;        // windows; changed under the lock

  std::mutex mutex_;
  std::condition_variable retirement_;
  dropped_pages pages_;
  bool failed_ = false;
};

}  // namespace shale::parallel
