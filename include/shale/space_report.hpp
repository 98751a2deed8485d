// Describes what the bytes of a container's file are used for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shale/error.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The bytes that an array takes, in the whole pages or granules that it occupies.
struct array_space {
  std::string name;
  std::uint64_t data_bytes = 0;   ///< its chunks, or the extents of a dense array
  std::uint64_t index_bytes = 0;  ///< the pages of its index, or a dense array's checksums

  /// Set for an array of a later version, with the reason why its bytes are unknown. They are 0
  /// here, and count in `space_report::unknown_bytes`.
  std::optional<error> problem = std::nullopt;
};

/// The use of the bytes of a file, according to the newest generation. Every byte is counted once,
/// so the members that count bytes, including those of all arrays, add up to `file_bytes`.
struct space_report {
  std::uint64_t generation = 0;
  std::uint64_t file_bytes = 0;
  std::vector<array_space> arrays;   ///< sorted by the bytes of their names
  std::uint64_t unknown_bytes = 0;   ///< of the arrays that have a problem, together
  std::uint64_t metadata_bytes = 0;  ///< fixed pages, names, descriptors, attributes, space map

  /// Bytes that only older generations refer to, and that no writer may use yet. A reader in any
  /// process holds such a generation, such a generation is retained, or it is the one before the
  /// newest, to which a crash may lead back. Bytes that are held for several reasons count once: for
  /// readers first, then as retained, then as previous.
  std::uint64_t held_by_readers_bytes = 0;
  std::uint64_t retained_bytes = 0;
  std::uint64_t previous_bytes = 0;

  /// Bytes that the next transaction may use: those that nothing refers to, and those after the end
  /// of the generation, which a running transaction may be writing.
  std::uint64_t free_bytes = 0;

  /// The oldest generation that a reader holds, if it is not the newest one.
  std::optional<std::uint64_t> oldest_read;
};

}  // namespace shale
