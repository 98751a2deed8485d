// Streaming: walking operands larger than the memory budget in windows, brought in ahead by threads
// that only read and dropped behind, so that the kernel never has to guess and resident memory
// stays inside the budget.
//
// Invariants
//   stream.1  a tile runs only after its window has been populated, so that a lost file is an `io`
//             exception here and not a signal in a kernel
//   stream.2  bytes are dropped only behind every tile that still needs them, or are brought back
//             by an ordinary fault; a written window is dropped only after its write-back ended
//   stream.3  pages that were in the page cache before this call stay there: they are somebody's
//   stream.4  at most (ahead + those the workers are in + lag) windows of each operand are resident
//             at once
//   stream.5  of a cold operand that is visited with gaps worth a read of their own, the gaps are
//             not read
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "parallel/executor_state.hpp"
#include "parallel/plan.hpp"
#include "parallel/reader_team.hpp"
#include "shale/executor.hpp"
#include "shale/storage.hpp"

namespace shale::parallel {

/// Operand `index` of the plan, whose layout's position 0 is the first byte of `bytes`.
struct streamed_operand {
  int index = 0;
  storage bytes;
  bool written = false;
};

/// Which operands are streamed: all of them where a loop reads a part of something larger.
enum class streams_if : std::uint8_t { larger_than_the_budget, mapped };

/// The windows over one plan's tiles. Made once per call; begin and end are called by the workers
/// of one tile loop, which claims tiles in ascending order.
class window_walk {
 public:
  /// Considers the file-backed ones of `operands`; does nothing at all if they fit in the budget,
  /// or in what `which` leaves them of it.
  window_walk(const plan& over, std::vector<streamed_operand> operands, executor& on,
              streams_if which = streams_if::larger_than_the_budget);
  ~window_walk();

  bool streams() const noexcept { return tiles_per_window_ > 0; }

  /// How many workers may have a tile at once; 0: any number.
  int workers_max() const noexcept { return workers_max_; }

  /// A worker's work on a tile: waits for the tile's window, and for its turn where workers far
  /// behind hold up what must be dropped first.
  class tile_visit {
   public:
    /// Throws io.
    tile_visit(window_walk& of, index_t tile);
    /// Without `end` before it nobody waits for this tile any more.
    ~tile_visit();
    tile_visit(const tile_visit&) = delete;
    tile_visit& operator=(const tile_visit&) = delete;

    /// After the work. Throws io.
    void end();

   private:
    window_walk& of_;
    index_t tile_;
    bool ended_ = false;
  };

  /// After the loop, on success: writes back and drops what is left. Throws io.
  void finish();

 private:
  struct operand_state {
    streamed_operand operand;
    bool forwards = false;    // tile numbers walk its bytes forwards (else: dropped tile by tile)
    bool gaps = false;        // handled piece by piece
    bool alone = true;        // no other operand has the same owner
    std::size_t dropped = 0;  // forwards: everything below has been given back
    std::size_t last = 0;     // forwards: one past the last byte it will ever need
  };

  // What of a window was in memory before this call; it is somebody's.
  struct found {
    bool resident = true;    // all that is read
    bool gaps_empty = true;  // nothing of operands with gaps, nor in the gaps
  };

  void begin(index_t tile);
  void end(index_t tile);
  void await_turn(index_t window);
  void abandon() noexcept;
  void consider(std::vector<streamed_operand> operands, streams_if which);
  void size_windows(std::size_t tile_bytes, std::size_t tile_span_bytes);
  byte_range range(const operand_state& of, index_t first_tile, index_t last_tile) const;
  byte_range range(const operand_state& of, index_t window) const;
  index_t end_tile(index_t window) const;
  found look_up(index_t window) const;
  void survey(index_t window);
  void read(index_t window);
  void prepare_stores(index_t window);
  void retire(index_t window);
  void drop_behind(operand_state& of, index_t retired, eviction how);
  template <class Visit>
  void for_each_segment(const operand_state& of, index_t tile, Visit visit) const;
  template <class Visit>
  void for_each_segment_of_window(const operand_state& of, index_t window, Visit visit) const;

  const plan& plan_;
  executor& executor_;
  std::vector<operand_state> operands_;
  std::optional<window_memory> memory_;
  bool writes_ = false;
  index_t tiles_per_window_ = 0;
  index_t windows_ = 0;
  index_t ahead_ = 0;
  index_t write_back_lag_ = 0;
  int workers_max_ = 0;

  // Whose pages they are is looked up before reading can have got there.
  std::mutex survey_mutex_;
  index_t surveyed_ = 0;
  index_t survey_ahead_ = 0;
  std::vector<found> found_;  // by window

  std::mutex store_mutex_;
  std::atomic<index_t> prepared_ = 0;  // windows ready to run

  // Apart from the other two, so that waiting for a device behind the work does not stop what is
  // ahead of it. A worker that ends a window waits for older ones to retire, and none begins a
  // window too far behind them: that is what keeps the rest from running away from a slow device,
  // or from a worker that was put to sleep.
  std::mutex behind_mutex_;
  std::condition_variable retirement_;
  std::atomic<index_t> retired_ = 0;  // windows written back and dropped
  index_t spread_ = 0;                // windows that workers may be in or behind
  bool abandoned_ = false;            // some tile will never end

  std::vector<std::atomic<index_t>> left_;  // tiles still to end, by window

  std::optional<reader_team> readers_;  // goes first
};

}  // namespace shale::parallel
