// Streams mapped operands that half of the memory budget does not hold. Consecutive tiles form a
// *window*. Reader threads bring windows in before workers need them, and windows are dropped after
// their last use. So resident memory stays inside the budget, and the call does not depend on the
// operating system's own read-ahead and eviction.
//
// The life of a window, and the part that does each step:
//   survey   ask which of its pages are in the page cache already, before any read could change it
//            (page_survey)
//   read     a reader thread compares checksums and populates the pages that are read (reader_team)
//   prepare  the first worker that begins one of its tiles populates the pages that are written
//   run      workers run its tiles (tile_loop)
//   end      its last tile ends; the write-back of its written pages begins (window_retirement)
//   retire   a few windows later: wait for the write-back, then drop its pages (dropped_pages)
// window_sizes chooses how large windows are, streamed_memory says where their bytes lie.
//
// Invariants
//   stream.1  a tile runs only after its window has been populated, so that a lost file is an `io`
//             exception here and not a signal in a kernel
//   stream.2  bytes are dropped only if no later tile needs them, or if an ordinary page fault
//             brings them back; a written window is dropped only after its write-back has ended
//   stream.3  pages that were in the page cache before this call stay there: other processes may
//             use them
//   stream.4  at most (ahead + windows that workers are in + lag) windows of each operand are
//             resident at once; together they fit in the memory that the call reserved, unless one
//             tile alone does not
//   stream.5  if an operand with gaps is not in the page cache, its gaps are not read
//   stream.6  if the executor compares checksums, a tile runs only after the segments that it
//             touches have been compared
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "parallel/executor/shared_work.hpp"
#include "parallel/plan/plan.hpp"
#include "parallel/threads/reader_team.hpp"
#include "parallel/windows/page_survey.hpp"
#include "parallel/windows/streamed_memory.hpp"
#include "parallel/windows/window_list.hpp"
#include "parallel/windows/window_memory.hpp"
#include "parallel/windows/window_retirement.hpp"
#include "parallel/windows/window_sizes.hpp"
#include "shale/executor.hpp"

namespace shale::parallel {

/// When mapped operands are streamed. `larger_than_half_the_budget`: if half of the budget does not
/// hold all of them (the other half is for temporaries), and the plan has at least two tiles.
/// `mapped`: always. A loop that reads a part of something larger uses this.
enum class streams_if : std::uint8_t { larger_than_half_the_budget, mapped };

/// The windows over one plan's tiles. It is made once per call. The workers of one tile loop, which
/// claims tiles in ascending order, make a `tile_visit` for each tile.
class window_walk {
 public:
  /// Streams the mapped files among `operands`, or none of them (see streams_if). If the executor
  /// compares checksums, those of the operands that are read and not streamed are compared here,
  /// before any tile runs (stream.6).
  /// Throws   corrupt, io
  window_walk(const plan& loop_plan, const std::vector<streamed_operand>& operands, executor& on,
              streams_if condition = streams_if::larger_than_half_the_budget);
  ~window_walk();

  bool streams() const noexcept { return !operands_.empty(); }

  /// How many workers may have a tile at once; 0: any number.
  int workers_max() const noexcept { return workers_max_; }

  /// A worker's visit to a tile. The constructor waits until the tile's window is populated, and
  /// until workers on much older windows have ended, whose pages must be dropped first.
  class tile_visit {
   public:
    /// Throws io.
    tile_visit(window_walk& walk, index_t tile);
    /// If `end` has not been called, the pass has failed: no thread waits for this tile any more.
    ~tile_visit();
    tile_visit(const tile_visit&) = delete;
    tile_visit& operator=(const tile_visit&) = delete;

    /// After the work. Throws io.
    void end();

   private:
    window_walk& walk_;
    index_t tile_;
    bool ended_ = false;
  };

  /// After the loop has succeeded: writes back and drops the remaining windows. Throws io.
  void finish();

 private:
  void begin(index_t tile);
  void tile_failed() noexcept;
  window_sizes sizes(const plan& loop_plan) const;
  void read(index_t window);
  void prepare_stores(index_t window);

  executor& executor_;
  std::vector<streamed_memory> operands_;
  std::optional<window_memory> memory_;
  window_list windows_;
  int workers_max_ = 0;

  // The parts exist if operands are streamed.
  std::optional<page_survey> survey_;
  std::optional<window_retirement> retirement_;
  std::mutex store_mutex_;
  std::atomic<index_t> prepared_ = 0;  // windows below this number are ready: their tiles may run
  std::optional<shared_work> with_readers_;
  std::optional<reader_team> readers_;  // destroyed first: its threads use the other members
};

}  // namespace shale::parallel
