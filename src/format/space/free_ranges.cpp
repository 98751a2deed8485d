#include "format/space/free_ranges.hpp"

#include <cassert>

#include "storage/system/pages.hpp"

namespace shale::format {
namespace {

using shale::detail::align_up;

std::uint64_t whole_pages(std::uint64_t first, std::uint64_t end) noexcept {
  const std::uint64_t start = align_up(first, page_bytes);
  const std::uint64_t stop = end / page_bytes * page_bytes;
  return stop > start ? stop - start : 0;
}

}  // namespace

// Enters a range of the set into the index by size.
void free_ranges::count_pages(std::uint64_t first, std::uint64_t end) {
  if (const std::uint64_t pages = whole_pages(first, end); pages > 0) {
    by_pages_.emplace(pages, first);
    page_total_ += pages;
  }
}

// The same for a range that has appeared.
void free_ranges::enter(std::uint64_t first, std::uint64_t end) {
  touched_.insert(first);
  count_pages(first, end);
}

// Removes a range that is no longer in the set from the index by size, and notes the change.
void free_ranges::leave(std::uint64_t first, std::uint64_t end) {
  touched_.insert(first);
  if (const std::uint64_t pages = whole_pages(first, end); pages > 0) {
    by_pages_.erase({pages, first});
    page_total_ -= pages;
  }
}

void free_ranges::add(std::uint64_t first, std::uint64_t end) {
  if (first == end) return;
  const auto [joined_first, joined_end] = ranges_.add(first, end);
  if (joined_first < first) leave(joined_first, first);
  if (end < joined_end) leave(end, joined_end);
  enter(joined_first, joined_end);
}

void free_ranges::append(std::uint64_t first, std::uint64_t end) {
  ranges_.append(first, end);
  count_pages(first, end);
}

void free_ranges::take(std::uint64_t first, std::uint64_t end) {
  if (first == end) return;
  const auto [old_first, old_end] = ranges_.subtract(first, end);
  assert(old_first <= first && end <= old_end);
  leave(old_first, old_end);
  if (old_first != first) enter(old_first, first);
  if (end != old_end) enter(end, old_end);
}

std::optional<std::uint64_t> free_ranges::find(std::uint64_t bytes, std::uint64_t alignment) const {
  for (auto found = by_pages_.lower_bound({bytes, 0}); found != by_pages_.end(); ++found) {
    const std::uint64_t start = align_up(found->second, alignment);
    const std::uint64_t end = ranges().find(found->second)->second;
    if (start <= end && bytes <= end - start) return start;
  }
  return std::nullopt;
}

std::optional<byte_interval> free_ranges::largest() const {
  if (by_pages_.empty()) return std::nullopt;
  const auto [pages, offset] = *by_pages_.rbegin();
  const std::uint64_t first = align_up(offset, page_bytes);
  return byte_interval{first, first + pages};
}

}  // namespace shale::format
