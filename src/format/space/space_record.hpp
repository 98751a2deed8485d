// One entry of the space map in its stored form. docs/container-format.md, "Space map", is this
// file in prose.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "format/bytes/types.hpp"

namespace shale::format {

/// The stored value for a range. The key holds the range's section and offset.
struct space_entry {
  std::uint64_t bytes = 0;
  std::uint64_t born = 0;   ///< first generation that used it; 0 if free
  std::uint64_t freed = 0;  ///< first generation that does not; 0 if free; `never` if live

  static constexpr std::uint64_t never = UINT64_MAX;

  bool is_free() const noexcept { return born == 0 && freed == 0; }
  friend bool operator==(const space_entry&, const space_entry&) noexcept = default;
};

/// The two sections of the map: the first byte of its keys.
enum class space_section : std::uint8_t { live = 1, unused = 2 };

/// A key and a value of the map, decoded.
struct space_record {
  space_section section;
  std::uint64_t offset = 0;
  space_entry entry;
};

inline constexpr std::size_t space_value_bytes = 24;

std::string space_key(space_section section, std::uint64_t offset);

std::array<std::byte, space_value_bytes> encode_space_entry(const space_entry& entry) noexcept;

/// Returns  nothing if the pair cannot be a record of a file that ends at `end_of_file`
std::optional<space_record> decode_space_record(std::string_view key, bytes_view value,
                                                std::uint64_t end_of_file) noexcept;

}  // namespace shale::format
