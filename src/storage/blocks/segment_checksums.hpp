// An interface to checksums that are stored with bytes, such as those of an array in a container.
// The storage floor only passes it on to the code that brings the bytes in.
#pragma once

#include "shale/storage.hpp"

namespace shale::detail {

class segment_checksums {
 public:
  virtual ~segment_checksums() = default;

  /// Compares all segments that `range` touches with their checksums, except segments that were
  /// compared in this process before. `range` counts from the owner's first byte.
  /// Threads  safe; two threads may both compare a segment
  /// Throws   corrupt naming segment and byte, io
  virtual void compare(byte_range range) = 0;
};

}  // namespace shale::detail
