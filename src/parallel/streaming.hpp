// Streaming: walking operands larger than the memory budget in windows, read ahead and dropped
// behind, so that the kernel never has to guess and resident memory stays inside the budget.
//
// Invariants
//   stream.1  a tile runs only after its window has been populated, so that a lost file is an `io`
//             exception here and not a signal in a kernel
//   stream.2  bytes are dropped only behind every tile that still needs them, or are brought back by
//             an ordinary fault; a written window is dropped only after its write-back ended
//   stream.3  pages that were in the page cache before this call stay there: they are somebody's
//   stream.4  at most (ahead + 2 + lag) windows of each operand are resident at once
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "parallel/plan.hpp"
#include "shale/executor.hpp"
#include "shale/storage.hpp"

namespace shale::parallel {

/// Operand `index` of the plan, whose layout's position 0 is the first byte of `bytes`.
struct streamed_operand {
  int index = 0;
  storage bytes;
  bool written = false;
};

/// The windows over one plan's tiles. Made once per call; begin and end are called by the workers
/// of one tile loop, which claims tiles in ascending order.
class window_walk {
 public:
  /// Considers the file-backed ones of `operands`; does nothing at all if they fit in the budget.
  window_walk(const plan& over, std::vector<streamed_operand> operands, executor& on);
  ~window_walk();

  bool streams() const noexcept { return tiles_per_window_ > 0; }

  /// How many workers may have a tile at once; 0: any number.
  int workers_max() const noexcept { return workers_max_; }

  /// Before the work on a tile. Throws io.
  void begin(index_t tile);

  /// After it.
  void end(index_t tile);

  /// After the loop, on success: writes back and drops what is left. Throws io.
  void finish();

 private:
  struct operand_state {
    streamed_operand operand;
    bool nested = false;      // tile numbers walk its bytes forwards (else: dropped tile by tile)
    std::size_t dropped = 0;  // nested: everything below has been given back
    std::size_t last = 0;     // nested: one past the last byte it will ever need
  };

  byte_range range(const operand_state& of, index_t window) const;
  void prefetch(index_t window);
  void populate(index_t window);
  void retire(index_t window);
  void drop_behind(operand_state& of, index_t retired, eviction how);
  template <class Visit>
  void for_each_segment(const operand_state& of, index_t tile, Visit visit) const;

  const plan& plan_;
  executor& executor_;
  std::vector<operand_state> operands_;
  index_t tiles_per_window_ = 0;
  index_t windows_ = 0;
  index_t ahead_ = 0;
  index_t write_back_lag_ = 0;
  int workers_max_ = 0;

  // Two locks, so that waiting for a device behind the work does not stop reading ahead of it. A
  // worker that ends a window waits for older ones to retire: that is what keeps the rest from
  // running away from a slow device.
  std::mutex ahead_mutex_;
  std::atomic<index_t> populated_ = 0;  // windows ready to run
  index_t prefetched_ = 0;
  std::mutex behind_mutex_;
  index_t retired_ = 0;  // windows written back and dropped

  std::vector<std::atomic<index_t>> left_;  // tiles still to end, by window
  std::vector<char> was_resident_;          // by window: its pages were somebody's already
};

}  // namespace shale::parallel
