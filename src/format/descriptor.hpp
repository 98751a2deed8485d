// What the catalog knows about one array: a plain value here, a verified FlatBuffer in the file
// (src/format/descriptor.fbs).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "format/codec.hpp"
#include "format/types.hpp"
#include "shale/dims.hpp"
#include "shale/dtype.hpp"

namespace shale::format {

/// Bytes of a dense array that one stored checksum covers; the last segment is shorter.
inline constexpr std::uint64_t dense_segment_bytes = 1u << 20;

/// Longest name of an array, in bytes.
inline constexpr std::size_t name_bytes_max = 1024;

/// Largest chunk, in bytes of elements: what a reader may be made to allocate by a file.
inline constexpr std::uint64_t chunk_bytes_max = 1ull << 30;

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

  /// Chunks along each axis that chunk numbers are computed with; at least what the shape needs.
  dims grid_capacity;

  std::vector<codec_stage> stages;

  // Kept by the transaction: whatever a caller puts in here is replaced.
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

  /// One element, `item_bytes(dtype)` bytes, little-endian; what absent chunks and padding hold.
  std::vector<std::byte> fill_value;

  /// Changed in place, outside the generations. The file has the field; this version refuses arrays
  /// that set it.
  bool live = false;

  /// Notes, in byte order of their keys, each key once.
  std::vector<std::pair<std::string, std::string>> attributes;

  // Kept by the transaction.
  std::uint64_t created = 0;   ///< generation that first held the array
  std::uint64_t modified = 0;  ///< generation that last changed it

  bool is_dense() const noexcept { return std::holds_alternative<dense_layout>(layout); }
  const dense_layout& dense() const { return std::get<dense_layout>(layout); }
  dense_layout& dense() { return std::get<dense_layout>(layout); }
  const chunked_layout& chunked() const { return std::get<chunked_layout>(layout); }
  chunked_layout& chunked() { return std::get<chunked_layout>(layout); }

  friend bool operator==(const array_record&, const array_record&) = default;
};

/// A chunked array's index entry: where the chunk's stored bytes lie, and what proves them.
struct chunk_entry {
  std::uint64_t offset = 0;
  std::uint64_t stored_bytes = 0;  ///< 1 to the chunk's full size
  std::uint64_t checksum = 0;      ///< XXH3-64 of the stored bytes
  std::uint32_t flags = 0;         ///< chunk_flag_…

  friend bool operator==(const chunk_entry&, const chunk_entry&) noexcept = default;
};

/// Throws `errc::invalid_argument` for a dense array: it has no chunks.
void require_chunked(const array_record& record);

/// Elements x width of the array. The record has been checked: cannot overflow.
std::uint64_t array_bytes(const array_record& record);

/// Bytes of one chunk at full size.
std::uint64_t chunk_bytes(const array_record& record);

/// Chunks along each axis that the shape needs; 0 where the shape is 0.
dims chunk_grid(const array_record& record);

/// The number of the chunk at `index` (0 <= index[a] < grid_capacity[a]): row-major in the grid
/// capacity, so that it stays the same while the array grows inside the capacity.
std::uint64_t chunk_number(const chunked_layout& layout, const dims& index);

/// The inverse.
dims chunk_index(const chunked_layout& layout, std::uint64_t number);

/// Sets or replaces an attribute, keeping the order.
void set_attribute(array_record& record, std::string_view key, std::string_view value);

/// Returns  whether there was one
bool remove_attribute(array_record& record, std::string_view key);

/// Throws   invalid_argument unless `name` is 1 to 1024 bytes of UTF-8 without control characters
void require_valid_name(std::string_view name);

/// Throws   invalid_argument naming the field, unless the record could be stored: name, shape, fill
///          value, chunk shape, capacity, codec, extents in number and size
void require_valid(const array_record& record);

/// The stored form. Deterministic: equal records give equal bytes.
std::vector<std::byte> encode_descriptor(const array_record& record);

/// The record behind stored bytes, all of it checked; `end_of_file` bounds its extents.
/// Throws   corrupt; unsupported for a dtype, layout or codec stage of a later version
array_record decode_descriptor(bytes_view stored, std::uint64_t end_of_file);

}  // namespace shale::format
