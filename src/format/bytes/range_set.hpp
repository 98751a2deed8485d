// A set of byte ranges. Ranges that touch are joined, so that each set has one form.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>

namespace shale::format {

/// Bytes first <= byte < end.
struct byte_interval {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
};

class range_set {
 public:
  /// first -> one past the last, in order; no two touch.
  const std::map<std::uint64_t, std::uint64_t>& ranges() const noexcept { return ranges_; }
  bool empty() const noexcept { return ranges_.empty(); }

  /// Whether the set contains every byte with first <= byte < end.
  bool contains(std::uint64_t first, std::uint64_t end) const noexcept {
    const auto after = ranges_.upper_bound(first);
    return after != ranges_.begin() && std::prev(after)->second >= end;
  }

  /// Whether the set contains any byte with first <= byte < end.
  bool overlaps(std::uint64_t first, std::uint64_t end) const noexcept {
    const auto after = ranges_.lower_bound(end);
    return after != ranges_.begin() && std::prev(after)->second > first;
  }

  /// The beginning of the range that ends exactly at `end`; nothing if no range ends there.
  std::optional<std::uint64_t> beginning_of(std::uint64_t end) const noexcept {
    const auto after = ranges_.lower_bound(end);
    if (after == ranges_.begin() || std::prev(after)->second != end) return std::nullopt;
    return std::prev(after)->first;
  }

  /// The first byte after `byte` that is in the set if `byte` is not, and not in it if `byte` is.
  /// UINT64_MAX if the set contains no byte from `byte` on.
  std::uint64_t end_of_run(std::uint64_t byte) const noexcept {
    const auto after = ranges_.upper_bound(byte);
    if (after != ranges_.begin() && std::prev(after)->second > byte)
      return std::prev(after)->second;
    return after != ranges_.end() ? after->first : UINT64_MAX;
  }

  /// Adds a range that does not overlap the set. Adding an empty range changes nothing.
  /// Returns  the range of the set that it is part of now
  byte_interval add(std::uint64_t first, std::uint64_t end) {
    if (first == end) return {first, end};
    auto after = ranges_.lower_bound(first);
    if (after != ranges_.end() && after->first == end) {
      end = after->second;
      after = ranges_.erase(after);
    }
    if (after != ranges_.begin() && std::prev(after)->second == first) {
      const auto before = std::prev(after);
      before->second = end;
      return {before->first, end};
    }
    ranges_.emplace_hint(after, first, end);
    return {first, end};
  }

  /// Adds a range that is not empty behind all others, and touches none of them.
  void append(std::uint64_t first, std::uint64_t end) {
    ranges_.emplace_hint(ranges_.end(), first, end);
  }

  /// Adds a range. The set may contain any part of it.
  void unite(std::uint64_t first, std::uint64_t end) {
    if (first == end) return;
    auto found = ranges_.upper_bound(first);
    if (found != ranges_.begin() && std::prev(found)->second >= first) --found;
    while (found != ranges_.end() && found->first <= end) {
      first = std::min(first, found->first);
      end = std::max(end, found->second);
      found = ranges_.erase(found);
    }
    ranges_.emplace_hint(found, first, end);
  }

  /// Removes a range. The set may contain any part of it.
  void erase(std::uint64_t first, std::uint64_t end) {
    auto found = ranges_.upper_bound(first);
    if (found != ranges_.begin() && std::prev(found)->second > first) --found;
    while (found != ranges_.end() && found->first < end) {
      const auto [had_first, had_end] = *found;
      found = ranges_.erase(found);
      if (had_first < first) ranges_.emplace(had_first, first);
      if (had_end > end) ranges_.emplace(end, had_end);
    }
  }

  /// Removes a range that the set contains. Removing an empty range changes nothing.
  /// Returns  the range of the set that it was part of
  byte_interval subtract(std::uint64_t first, std::uint64_t end) {
    if (first == end) return {first, end};
    const auto found = std::prev(ranges_.upper_bound(first));
    const byte_interval whole{found->first, found->second};
    if (whole.first == first) ranges_.erase(found);
    else found->second = first;
    if (whole.end != end) ranges_.emplace(end, whole.end);
    return whole;
  }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;
};

}  // namespace shale::format
