// The bytes of a container file that are used for locks only, and the errors that locks cause.
// docs/container-format.md, "Locks", is this map in prose.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "format/os/file_system.hpp"
#include "shale/error.hpp"

namespace shale::format {

// All data lies before file_bytes_max = 2^59, so no lock covers a data byte. `live_mapper_locks`,
// `compact_lock` and `row_locks` are reserved: no program takes them yet.
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

/// Whether the lock can be a reader's pin: a shared lock on bytes of generations, which count from
/// 1. The kernel reports pins on neighbouring generations in one description as one lock.
inline bool is_pin(const found_lock& lock) noexcept {
  return lock.mode == lock_mode::shared && lock.range.first > pin_locks &&
         lock.range.last < row_locks;
}

/// Takes an exclusive lock on the byte for the description. Returns false if another description
/// holds a lock on it.
/// Throws   the code of the system's error: the lock cannot be taken for another reason
bool try_exclusive(open_file& description, std::uint64_t byte, const std::string& path);

/// The error for a lock that no container program takes, by its mode or its range. It names the
/// lock's range and its holder.
error foreign_lock(open_file& asking, const found_lock& lock, const std::string& path);

/// The error for a writer whose timeout has passed. It names the lock and its holder.
error writer_is_busy(open_file& asking, std::chrono::milliseconds waited, const std::string& path);

/// Checks that the file system honours locks of open file descriptions: a lock that the second
/// description takes must be seen by the first. Both must be of one file.
/// Throws   unsupported if it does not, busy (another program's lock is in the way), io
void probe_locks(open_file& first, open_file& second, const std::string& path);

}  // namespace shale::format
