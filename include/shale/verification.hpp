// The report of a check of a container: its size in parts, and the damage that was found.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shale/error.hpp"

namespace [[gnu::visibility("default")]] shale {

/// Damage that `verify` found.
struct finding {
  errc code;         ///< corrupt or io
  std::string text;  ///< a description of the damage and its place
};

/// An array that `verify` could not check, because it is of a later version. That is no damage.
struct unchecked_array {
  std::string name;
  error problem;  ///< with the code unsupported
};

/// The result of `verify`. Without findings the generation is sound, except for the elements of
/// `unchecked` arrays, which were not checked.
struct verification {
  std::uint64_t generation = 0;
  std::uint64_t pages = 0;   ///< pages of metadata; a long value counts as one
  std::uint64_t arrays = 0;  ///< also the empty arrays that hold attributes of levels
  std::uint64_t chunks = 0;
  std::uint64_t data_bytes = 0;  ///< stored bytes of chunks and dense arrays
  std::uint64_t file_bytes = 0;  ///< live + freed + free bytes, exactly
  std::uint64_t live_bytes = 0;  ///< bytes that the generation uses

  /// Bytes of older generations. The next transaction may reuse them, except what a pinned
  /// generation needs, or the one right before the newest: a crash may lead back to it.
  std::uint64_t freed_bytes = 0;
  std::uint64_t free_bytes = 0;  ///< bytes that no generation uses
  std::vector<finding> findings;
  std::vector<unchecked_array> unchecked;  ///< sorted by the bytes of their names
};

}  // namespace shale
