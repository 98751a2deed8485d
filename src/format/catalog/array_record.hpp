// Describes one array of the catalog as a plain value. descriptor.hpp has its stored form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "format/bytes/types.hpp"
#include "format/codec/codec.hpp"
#include "shale/dims.hpp"
#include "shale/dtype.hpp"

namespace shale::format {

/// Bytes of a dense array that one stored checksum covers; the last segment is shorter.
inline constexpr std::uint64_t dense_segment_bytes = 1u << 20;

/// Largest chunk, in bytes of elements. It bounds the memory that a file can make a reader
/// allocate.
inline constexpr std::uint64_t chunk_bytes_max = 1ull << 30;

/// Largest product of a grid's capacity. It leaves the two highest bits of a chunk's number unused.
inline constexpr std::uint64_t chunk_numbers_max = 1ull << 62;

/// Elements lie in the file as in memory: row-major, in extents that follow each other.
struct dense_layout {
  /// Together they hold the array's bytes, in order. All but the last are multiples of their
  /// alignment (`dense_alignment`), so that they can be mapped side by side. Empty arrays have
  /// none.
  std::vector<extent> extents;

  /// One XXH3-64 for each segment of `dense_segment_bytes` of the array's bytes, as 8-byte
  /// little-endian numbers; the array floor fills it. Zero bytes long: not checksummed yet.
  extent checksums;

  /// XXH3-128 of those numbers.
  checksum128 checksums_checksum;

  friend bool operator==(const dense_layout&, const dense_layout&) = default;
};

/// Elements lie in chunks, each coded by itself and stored at full size (edge chunks are padded
/// with the fill value). A chunk that is absent from the index reads as the fill value.
struct chunked_layout {
  dims chunk_shape;

  /// Chunks along each axis that chunk numbers are computed with; at least as many as the shape
  /// needs.
  dims grid_capacity;

  std::vector<codec_stage> stages;

  // The transaction sets these members, and replaces the values of a caller.
  page_ref index;                  ///< root of the tree: chunk number -> chunk_entry
  std::uint64_t chunk_count = 0;   ///< entries of the index
  std::uint64_t stored_bytes = 0;  ///< sum of their stored bytes

  friend bool operator==(const chunked_layout&, const chunked_layout&) = default;
};

/// One array in one generation.
struct array_record {
  std::string name;
  shale::dtype dtype = shale::dtype::float32;
  dims shape;
  std::variant<dense_layout, chunked_layout> layout;

  /// One element, `item_bytes(dtype)` bytes, little-endian: the value of absent chunks and padding.
  std::vector<std::byte> fill_value;

  /// Changed in place, outside the generations. The file has the field; this version refuses arrays
  /// that set it.
  bool live = false;

  /// Attributes, in byte order of their keys, each key once.
  std::vector<std::pair<std::string, std::string>> attributes;

  // The transaction sets these members.
  std::uint64_t created = 0;   ///< generation that first held the array
  std::uint64_t modified = 0;  ///< generation that last changed it

  bool is_dense() const noexcept { return std::holds_alternative<dense_layout>(layout); }
  const dense_layout& dense() const { return std::get<dense_layout>(layout); }
  dense_layout& dense() { return std::get<dense_layout>(layout); }
  const chunked_layout& chunked() const { return std::get<chunked_layout>(layout); }
  chunked_layout& chunked() { return std::get<chunked_layout>(layout); }

  friend bool operator==(const array_record&, const array_record&) = default;
};

/// Throws `errc::invalid_argument` for a dense array: it has no chunks.
void require_chunked(const array_record& record);

/// Bytes of all elements. The record must have been checked: then the product cannot overflow.
std::uint64_t array_bytes(const array_record& record);

/// Bytes of one chunk at full size.
std::uint64_t chunk_bytes(const array_record& record);

/// Describes the first problem of the record; nothing if it can be stored. It does not check the
/// limits that bind only writers: see `require_valid`.
std::optional<std::string> problem_of(const array_record& record);

/// Throws   invalid_argument naming the field, unless the record can be stored. It checks name,
///          shape, fill value, chunk shape, capacity, codec, number and size of extents, attributes
void require_valid(const array_record& record);

}  // namespace shale::format
