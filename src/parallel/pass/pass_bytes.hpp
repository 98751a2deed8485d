// Counts the bytes that a pass reads and writes, unit by unit, so that statistics grow while it
// runs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "parallel/executor/counters.hpp"
#include "shale/index.hpp"

namespace shale::parallel {

/// Distributes the bytes that a pass reads to its units. A unit counts a share in proportion to its
/// elements; the shares of all units sum exactly to `bytes`.
/// Threads  any, at any time
class byte_shares {
 public:
  byte_shares(std::uint64_t bytes, index_t elements) noexcept
      : bytes_(bytes), elements_(static_cast<std::uint64_t>(elements)) {}

  /// The share of a unit with that number of elements.
  std::uint64_t take(index_t elements) noexcept {
    const auto more = static_cast<std::uint64_t>(elements);
    const std::uint64_t before = taken_.fetch_add(more, std::memory_order_relaxed);
    return first(before + more) - first(before);
  }

 private:
  __extension__ using wide = unsigned __int128;

  // The sum of the shares of the first elements, rounded down.
  std::uint64_t first(std::uint64_t elements) const noexcept {
    return static_cast<std::uint64_t>(wide{bytes_} * elements / elements_);
  }

  const std::uint64_t bytes_;
  const std::uint64_t elements_;
  std::atomic<std::uint64_t> taken_ = 0;
};

/// Threads  any, at any time
class pass_bytes {
 public:
  /// A pass over `elements` positions reads `read_bytes` in all, and writes `written_bytes` at each
  /// position.
  pass_bytes(counters& count, std::uint64_t read_bytes, std::size_t written_bytes,
             index_t elements) noexcept
      : count_(count), read_(read_bytes, elements), written_bytes_(written_bytes) {}

  /// The bytes that a unit of so many elements writes.
  std::size_t written(index_t elements) const noexcept {
    return static_cast<std::size_t>(elements) * written_bytes_;
  }

  void count_unit(index_t elements) noexcept {
    count_.read(read_.take(elements));
    count_.written(written(elements));
  }

 private:
  counters& count_;
  byte_shares read_;
  const std::size_t written_bytes_;
};

}  // namespace shale::parallel
