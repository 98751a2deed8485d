// The free ranges of a file, found by place and by size.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "format/bytes/file_layout.hpp"
#include "format/bytes/range_set.hpp"

namespace shale::format {

/// A set of ranges with an index by size. It records which ranges have changed.
class free_ranges {
 public:
  /// Adds a range that was not free. It is joined with free ranges that touch it.
  void add(std::uint64_t first, std::uint64_t end);

  /// Adds a range behind all others that touches none of them, and counts it as unchanged.
  void append(std::uint64_t first, std::uint64_t end);

  /// Removes a range that lies inside a free one.
  void take(std::uint64_t first, std::uint64_t end);

  /// Whether every byte with first <= byte < end is free.
  bool contains(std::uint64_t first, std::uint64_t end) const noexcept {
    return ranges_.contains(first, end);
  }

  /// The start of the smallest range that holds `bytes` (whole pages) at that alignment, which is a
  /// power of two.
  std::optional<std::uint64_t> find(std::uint64_t bytes, std::uint64_t alignment) const;

  /// The beginning of the free range that ends exactly at `end`; nothing if there is none.
  std::optional<std::uint64_t> beginning_of(std::uint64_t end) const {
    return ranges_.beginning_of(end);
  }

  /// The whole pages of the largest range.
  std::optional<byte_interval> largest() const;

  /// Sum of the whole pages of all ranges, in bytes.
  std::uint64_t page_total() const noexcept { return page_total_; }

  /// first -> one past the last.
  const std::map<std::uint64_t, std::uint64_t>& ranges() const noexcept { return ranges_.ranges(); }

  /// The start offsets of ranges that have appeared or disappeared since the last call.
  std::set<std::uint64_t> take_touched() { return std::exchange(touched_, {}); }

 private:
  void count_pages(std::uint64_t first, std::uint64_t end);
  void enter(std::uint64_t first, std::uint64_t end);
  void leave(std::uint64_t first, std::uint64_t end);

  range_set ranges_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_pages_;  // {bytes in whole pages, offset}
  std::set<std::uint64_t> touched_;
  std::uint64_t page_total_ = 0;
};

}  // namespace shale::format
