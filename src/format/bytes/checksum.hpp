// The checksums of the format: XXH3, 64 bits for data, 128 for metadata, always with seed 0.
#pragma once

#include <cstdint>

#include "format/bytes/types.hpp"

namespace shale::format {

/// XXH3-64, for chunks and dense segments.
/// Cost     memory speed
std::uint64_t checksum_data(bytes_view bytes) noexcept;

/// XXH3-128, for metadata: header, superblocks, pages, overflow extents.
checksum128 checksum_metadata(bytes_view bytes) noexcept;

/// Common base of the two classes below.
class checksum_state {
 public:
  checksum_state(const checksum_state&) = delete;
  checksum_state& operator=(const checksum_state&) = delete;

 protected:
  /// Throws   out_of_memory
  checksum_state();
  ~checksum_state();

  void* state_;
};

/// checksum_data of bytes that come in pieces.
class data_checksum : checksum_state {
 public:
  data_checksum();
  void add(bytes_view bytes) noexcept;
  std::uint64_t value() const noexcept;
};

/// checksum_metadata of bytes that come in pieces.
class metadata_checksum : checksum_state {
 public:
  metadata_checksum();
  void add(bytes_view bytes) noexcept;
  checksum128 value() const noexcept;
};

/// 32 hexadecimal digits, the high half first, as xxhsum prints them.
std::string to_string(const checksum128& checksum);

}  // namespace shale::format
