// Remembers which windows of a call's operands were in the page cache before the call, so that they
// stay there (stream.3). A window is surveyed before any read can bring in its pages. At a page
// fault the kernel may read later pages, too, so a survey covers later windows as far as that.
#pragma once

#include <mutex>
#include <span>
#include <vector>

#include "parallel/windows/streamed_memory.hpp"
#include "parallel/windows/window_list.hpp"

namespace shale::parallel {

class page_survey {
 public:
  /// The operands must outlive this object.
  page_survey(std::span<const streamed_memory> operands, window_list windows);

  /// Looks up the pages of the window, and of windows that reading it may bring in.
  /// Threads  any
  void survey_up_to(index_t window);

  struct found {
    bool resident = true;    ///< the pages of operands that are read were in the page cache
    bool gaps_empty = true;  ///< of operands with gaps, no page of a piece or of a gap was there
  };

  /// Returns what the survey found. `survey_up_to` must have been called before, for this
  /// window or a later one.
  found at(index_t window) const noexcept { return found_[static_cast<std::size_t>(window)]; }

 private:
  found look_up(index_t window) const;

  const std::span<const streamed_memory> operands_;
  const window_list windows_;
  index_t ahead_ = 0;
  std::vector<found> found_;  // by window number

  std::mutex mutex_;
  index_t surveyed_ = 0;  // windows
};

}  // namespace shale::parallel
