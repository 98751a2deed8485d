// Drops the pages of finished windows. Three cases:
//   forwards, no gaps   one range, from where dropping has stopped to the first byte that the next
//                       window needs; large pages are dropped as a whole
//   forwards, gaps      the same, but pages that this call has read are dropped from the page cache
//                       piece by piece
//   not forwards        every piece of the window's tiles and the 2 MiB around it, from this process
//                       only: a later tile may need the page again, and then an ordinary page fault
//                       brings it back
//
// Pages that were in the page cache before the call are only unmapped (stream.3). Written pages are
// dropped after their write-back has ended (stream.2).
#pragma once

#include <span>
#include <vector>

#include "parallel/windows/page_survey.hpp"
#include "parallel/windows/streamed_memory.hpp"
#include "parallel/windows/window_list.hpp"
#include "shale/storage.hpp"

namespace shale::parallel {

/// Threads  one at a time
class dropped_pages {
 public:
  /// The operands and the survey must outlive this object.
  dropped_pages(std::span<const streamed_memory> operands, const page_survey& survey,
                window_list windows);

  /// Waits for the write-back of the window's written pages, and drops its pages. Windows come in
  /// ascending order. Throws io
  void drop(index_t window);

 private:
  struct progress {
    bool alone = true;        // no other operand has the same owner
    std::size_t dropped = 0;  // if visited forwards: all bytes below have been dropped
  };

  static void drop_granules(const streamed_memory& operand, tile_numbers tiles);
  void drop_finished(std::size_t operand, index_t window, eviction scope);

  const std::span<const streamed_memory> operands_;
  const page_survey& survey_;
  const window_list windows_;
  std::vector<progress> progress_;  // by operand number
};

}  // namespace shale::parallel
