// Finds where the bytes of a dense array lie in the file.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "format/bytes/types.hpp"

namespace shale::arrays {

/// The extents of a dense array, prepared for many searches. A file may name millions of extents,
/// so a search must not walk through them.
/// Cost     O(extents) to make, 8 bytes for each
/// Threads  safe
/// Lifetime the extents must outlive it, and stay as they are
class dense_places {
 public:
  /// `first` is the position in the array where the first of the extents begins.
  explicit dense_places(std::span<const format::extent> extents, std::uint64_t first = 0);

  /// The pieces of the file that hold bytes [offset, offset + bytes) of the array, in order.
  /// Cost     O(log(extents) + pieces). Reads no other extents than those that hold the pieces
  std::vector<format::extent> pieces(std::uint64_t offset, std::uint64_t bytes) const;

  /// The number of extents from which all objects of the process were made so far. It measures the
  /// cost of making them.
  static std::uint64_t extents_prepared() noexcept { return prepared_; }

 private:
  static inline std::atomic<std::uint64_t> prepared_ = 0;

  std::span<const format::extent> extents_;
  std::vector<std::uint64_t> ends_;  // for each extent: where it ends in the array
};

}  // namespace shale::arrays
