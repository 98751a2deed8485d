#include "parallel/windows/page_survey.hpp"

#include <algorithm>

#include "parallel/mapped/residency.hpp"

namespace shale::parallel {

namespace {

// How far beyond a page fault the kernel may read on its own, in operands without gaps. Read-ahead
// in large pages hardly ever reaches this far.
constexpr std::size_t kernel_read_ahead_bytes = std::size_t{32} << 20;

}  // namespace

page_survey::page_survey(std::span<const streamed_memory> operands, window_list windows)
    : operands_(operands), windows_(windows), found_(static_cast<std::size_t>(windows.count())) {
  std::size_t tile_bytes = 0;
  for (const auto& operand : operands)
    if (!operand.has_gaps()) tile_bytes = std::max(tile_bytes, operand.span_bytes());
  if (tile_bytes > 0)
    ahead_ =
        static_cast<index_t>(kernel_read_ahead_bytes / tile_bytes) / windows.tiles_per_window + 1;
}

void page_survey::survey_up_to(index_t window) {
  const std::lock_guard lock(mutex_);
  for (; surveyed_ < std::min(window + 1 + ahead_, windows_.count()); ++surveyed_)
    found_[static_cast<std::size_t>(surveyed_)] = look_up(surveyed_);
}

page_survey::found page_survey::look_up(index_t window) const {
  const tile_numbers tiles = windows_.tiles(window);
  found result;
  for (const auto& operand : operands_) {
    if (operand.written()) continue;
    if (!operand.forwards()) {
      result.resident = false;
      continue;
    }
    residency pages;
    pages.add(operand.bytes(), operand.range(tiles));
    if (operand.has_gaps() && pages.resident_bytes() > 0) {
      result.gaps_empty = false;
      pages = {};
      operand.for_each_piece(tiles, [&](byte_range piece) { pages.add(operand.bytes(), piece); });
    }
    if (!pages.counts_as_resident()) result.resident = false;
  }
  return result;
}

}  // namespace shale::parallel
