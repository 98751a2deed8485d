// Decides whether a part of a mapped file counts as resident.
#pragma once

#include <cstddef>

#include "shale/storage.hpp"

namespace shale::parallel {

/// Adds up how many bytes of some pieces are in the page cache.
class residency {
 public:
  void add(const storage& bytes, byte_range piece) {
    wanted_ += piece.bytes;
    resident_ += bytes.resident_bytes(piece);
  }

  std::size_t resident_bytes() const noexcept { return resident_; }

  /// Nine tenths are enough: the first and last pages are shared with neighbouring windows or
  /// tiles, so this call may have read some pages of them, and may have dropped others.
  bool counts_as_resident() const noexcept { return resident_ >= wanted_ / 10 * 9; }

 private:
  std::size_t wanted_ = 0;
  std::size_t resident_ = 0;
};

}  // namespace shale::parallel
