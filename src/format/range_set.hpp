// A set of byte ranges in which neighbours are always joined.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

namespace shale::format {

class range_set {
 public:
  /// first -> one past the last, in order; no two touch.
  const std::map<std::uint64_t, std::uint64_t>& ranges() const noexcept { return ranges_; }
  bool empty() const noexcept { return ranges_.empty(); }

  /// Whether all of first <= byte < end is in the set.
  bool contains(std::uint64_t first, std::uint64_t end) const noexcept {
    const auto after = ranges_.upper_bound(first);
    return after != ranges_.begin() && std::prev(after)->second >= end;
  }

  /// Whether any of it is.
  bool overlaps(std::uint64_t first, std::uint64_t end) const noexcept {
    const auto after = ranges_.lower_bound(end);
    return after != ranges_.begin() && std::prev(after)->second > first;
  }

  /// Adds a range that does not overlap the set.
  void add(std::uint64_t first, std::uint64_t end) {
    if (first == end) return;
    auto after = ranges_.lower_bound(first);
    if (after != ranges_.end() && after->first == end) {
      end = after->second;
      after = ranges_.erase(after);
    }
    if (after != ranges_.begin() && std::prev(after)->second == first)
      std::prev(after)->second = end;
    else ranges_.emplace_hint(after, first, end);
  }

  /// Removes a range that the set contains.
  void subtract(std::uint64_t first, std::uint64_t end) {
    if (first == end) return;
    const auto at = std::prev(ranges_.upper_bound(first));
    const std::uint64_t old_end = at->second;
    if (at->first == first) ranges_.erase(at);
    else at->second = first;
    if (old_end != end) ranges_.emplace(end, old_end);
  }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;
};

}  // namespace shale::format
