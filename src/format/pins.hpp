// Which generations readers hold: shared locks on bytes beyond any data, one for each generation.
// The kernel frees them when a process dies, however it dies.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "format/file_system.hpp"
#include "format/types.hpp"

namespace shale::format {

// The map of lock bytes (docs/format.md, "Locks"). No data lies at or beyond file_bytes_max = 2^59.
inline constexpr std::uint64_t live_mapper_locks = 1ull << 59;  ///< + offset of the state extent
inline constexpr std::uint64_t writer_lock = 1ull << 60;
inline constexpr std::uint64_t no_shrink_lock = (1ull << 60) + 1;
inline constexpr std::uint64_t probe_lock = (1ull << 60) + 2;
inline constexpr std::uint64_t compact_lock = (1ull << 60) + 3;
inline constexpr std::uint64_t queue_lock = (1ull << 60) + 4;
inline constexpr std::uint64_t pin_locks = 1ull << 61;  ///< + generation
inline constexpr std::uint64_t row_locks = 1ull << 62;  ///< + file offset of a live array's row

/// Generations are below this, so that their locks stay below the row locks.
inline constexpr std::uint64_t generations_end = row_locks - pin_locks;

/// One process's hold on one generation. Owns a description of its own, which is closed, never
/// unlocked and never duplicated: that is the only release.
class pin {
 public:
  /// Takes the shared locks of a reader on a fresh description: the generation's, and no-shrink.
  /// Throws   io
  pin(std::unique_ptr<open_file> description, std::uint64_t generation, const std::string& path);

  std::uint64_t generation() const noexcept { return generation_; }

 private:
  std::unique_ptr<open_file> description_;
  std::uint64_t generation_;
};

/// All generations that anybody holds, in order, by bisection: the kernel names some lock of a
/// range, not the lowest, so what is left and right of it is asked for in turn.
/// `asking` must hold no pin itself: a description does not see its own locks.
/// Cost     O(pinned generations) system calls
/// Throws   io
std::vector<generation_range> scan_pins(open_file& asking, const std::string& path);

/// Throws   unsupported unless the file system honours locks of open file descriptions: one that is
///          taken by a second description must be seen by the first
void probe_locks(open_file& first, open_file& second, const std::string& path);

}  // namespace shale::format
