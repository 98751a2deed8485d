#include "format/bytes/generation_set.hpp"

#include <algorithm>

namespace shale::format {

generation_set::generation_set(std::vector<generation_range> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const generation_range& range : ranges) {
    // A list that was read from a file may hold the largest number, so nothing is added to `last`.
    const bool touches = !ranges_.empty() && (range.first <= ranges_.back().last ||
                                              range.first - 1 == ranges_.back().last);
    if (touches) ranges_.back().last = std::max(ranges_.back().last, range.last);
    else ranges_.push_back(range);
  }
}

bool generation_set::overlaps(std::uint64_t first, std::uint64_t end) const noexcept {
  const auto found =
      std::partition_point(ranges_.begin(), ranges_.end(),
                           [&](const generation_range& range) { return range.last < first; });
  return first < end && found != ranges_.end() && found->first < end;
}

}  // namespace shale::format
