// Finds where the bytes of a dense array lie in the file.
#pragma once

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
  explicit dense_places(std::span<const format::extent> extents);

  /// The pieces of the file that hold bytes [offset, offset + bytes) of the array, in order.
  /// Cost     O(log(extents) + pieces). Reads no other extents than those that hold the pieces
  std::vector<format::extent> pieces(std::uint64_t offset, std::uint64_t bytes) const;

 private:
  std::span<const format::extent> extents_;
  std::vector<std::uint64_t> ends_;  // for each extent: where it ends in the array
};

}  // namespace shale::arrays
