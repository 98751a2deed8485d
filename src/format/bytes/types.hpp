// The small values of the file format: ranges of bytes, checksums, references to pages, the
// identity of a container, ranges of generations.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace shale::format {

using bytes_view = std::span<const std::byte>;
using bytes_span = std::span<std::byte>;

/// Whether both have the same bytes. std::equal would compare one byte at a time.
inline bool same_bytes(bytes_view a, bytes_view b) noexcept {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

/// Whether all bytes are 0.
inline bool all_zero(bytes_view bytes) noexcept {
  if (bytes.empty()) return true;
  // Each byte equals the next one, and the first one is 0.
  return bytes[0] == std::byte{0} && same_bytes(bytes.first(bytes.size() - 1), bytes.subspan(1));
}

/// A range of bytes of the file. `bytes` counts the bytes that are used. The space that the extent
/// takes up is rounded up to the granule of its kind (docs/container-format.md, "Extents").
struct extent {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  /// One past the last byte. Only meaningful on extents that were checked to lie inside the file.
  std::uint64_t end() const noexcept { return offset + bytes; }

  friend bool operator==(const extent&, const extent&) noexcept = default;
};

/// XXH3-128 of metadata.
struct checksum128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  friend bool operator==(const checksum128&, const checksum128&) noexcept = default;
};

/// Refers to a tree page by its offset and checksum. Offset 0 stands for an empty tree.
struct page_ref {
  std::uint64_t offset = 0;
  checksum128 checksum;

  explicit operator bool() const noexcept { return offset != 0; }
  friend bool operator==(const page_ref&, const page_ref&) noexcept = default;
};

/// Identifies a container for ever. Byte-wise copies keep it.
struct uuid {
  std::array<std::uint8_t, 16> bytes{};

  /// A random one (version 4). Throws io.
  static uuid random();

  friend bool operator==(const uuid&, const uuid&) noexcept = default;
};

/// "8-4-4-4-12" lower-case hexadecimal digits.
std::string to_string(const uuid& id);

/// Generations first <= g <= last.
struct generation_range {
  std::uint64_t first = 0;
  std::uint64_t last = 0;

  friend bool operator==(const generation_range&, const generation_range&) noexcept = default;
};

}  // namespace shale::format
