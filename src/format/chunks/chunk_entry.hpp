// Encodes and decodes an entry of a chunk index: the place and the checksum of a chunk's stored
// bytes. docs/container-format.md, "Catalog and descriptors", gives its stored form.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "format/bytes/types.hpp"
#include "format/catalog/array_record.hpp"
#include "format/codec/codec.hpp"

namespace shale::format {

/// The place of a chunk's stored bytes, and their checksum.
struct chunk_entry {
  std::uint64_t offset = 0;
  std::uint64_t stored_bytes = 0;  ///< 1 to the chunk's full size
  std::uint64_t checksum = 0;      ///< XXH3-64 of the stored bytes
  std::uint32_t flags = 0;         ///< chunk_flag_…

  friend bool operator==(const chunk_entry&, const chunk_entry&) noexcept = default;
};

/// A chunk of an array and its number.
struct numbered_chunk {
  std::uint64_t number = 0;
  chunk_entry entry;
};

/// The entry of a chunk that has no place in the file yet: its offset is 0.
/// Cost     computes the checksum of the stored bytes
chunk_entry entry_of(const encoded_chunk& chunk) noexcept;

/// The stored form.
std::array<std::byte, 32> encode_chunk_entry(const chunk_entry& entry) noexcept;

/// Decodes an entry of `record`'s index in a file that ends at `end_of_file`.
/// Throws   corrupt unless it is a possible entry of that array
chunk_entry decode_chunk_entry(bytes_view value, const array_record& record, std::uint64_t number,
                               std::uint64_t end_of_file);

}  // namespace shale::format
