// The superblock: the 512 bytes that publish a generation. They are one sector, so that the device
// writes all of them or none. docs/container-format.md, "Superblock", is this file in prose.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "format/bytes/types.hpp"

namespace shale::format {

inline constexpr std::size_t superblock_bytes = 512;

/// The sector as it is in the file.
using superblock_sector = std::array<std::byte, superblock_bytes>;

inline constexpr std::uint32_t superblock_version = 1;

/// Feature bits that this build knows: none so far. docs/container-format.md lists the reserved
/// ones.
inline constexpr std::uint64_t known_incompatible_features = 0;
inline constexpr std::uint64_t known_read_only_compatible_features = 0;

struct superblock {
  std::uint32_t version = superblock_version;
  std::uint64_t generation = 0;
  extent root;
  checksum128 root_checksum;
  std::uint64_t end_of_file = 0;
  std::uint64_t incompatible = 0;          ///< unknown bits: do not open
  std::uint64_t read_only_compatible = 0;  ///< unknown bits: do not write
  std::uint64_t compatible = 0;            ///< unknown bits: clear them when writing

  friend bool operator==(const superblock&, const superblock&) noexcept = default;
};

superblock_sector encode_superblock(const superblock& fields, const uuid& id, std::uint32_t slot);

/// Decodes a sector. It is valid if it carries the magic number, this container's uuid, this slot's
/// number and the right checksum. The same test decides which generation is opened, which slot is
/// written, which space is reused, and whether a slot has changed under a reader.
/// Nothing else makes a superblock invalid: with an unknown version or feature it still counts as
/// the newest generation, and if its root does not verify, the container is `corrupt`.
/// Returns  the fields, or nothing if the sector is not valid
std::optional<superblock> decode_superblock(const superblock_sector& sector, const uuid& id,
                                            std::uint32_t slot) noexcept;

}  // namespace shale::format
