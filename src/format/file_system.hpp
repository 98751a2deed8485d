// The small seam to the operating system: everything the format floor asks of it goes through here,
// so that tests can record every write, fail the n-th call, replay every crash and interleave
// writers, readers and kills.
//
// Calls answer as the kernel does: >= 0 is success (a count where one is asked for), < 0 is
// -errno. They may be interrupted (-EINTR) and may move fewer bytes than asked; `file_io.hpp` holds
// the loops and turns failures into `shale::error`.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "format/types.hpp"

namespace shale::format {

/// The kernel's answer: >= 0 success, < 0 -errno.
using os_result = std::int64_t;

enum class lock_mode : std::uint8_t { shared, exclusive };

/// Which file it is, whatever its name.
struct file_identity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;

  friend bool operator==(const file_identity&, const file_identity&) noexcept = default;
};

/// Bytes of a lock range: first <= byte <= last.
struct lock_range {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

/// One open file description: the owner of its locks, which go when it is destroyed and in no
/// other way (see the lock map in docs/format.md; only what `open_unshared` opened takes them from
/// forked children too).
/// Threads  pread and pwrite may be called from several threads at once
class open_file {
 public:
  virtual ~open_file() = default;

  virtual os_result pread(bytes_span into, std::uint64_t offset) noexcept = 0;
  virtual os_result pwrite(bytes_view from, std::uint64_t offset) noexcept = 0;

  /// Reserves space for the range; grows the file if it ends beyond its size. Bytes that were not
  /// there before read as zeros.
  virtual os_result allocate(std::uint64_t offset, std::uint64_t bytes) noexcept = 0;

  /// Makes the range read as zeros, giving its space back where the file system can. Never changes
  /// the size.
  virtual os_result punch(std::uint64_t offset, std::uint64_t bytes) noexcept = 0;

  /// fdatasync: also of what was stored through mappings of the same file.
  virtual os_result sync_data() noexcept = 0;

  virtual os_result truncate(std::uint64_t bytes) noexcept = 0;
  virtual os_result size() noexcept = 0;
  virtual os_result identify(file_identity& identity) noexcept = 0;

  /// Takes a lock on one byte for this description, or answers -EAGAIN at once. Locks of one
  /// description do not exclude each other: every lock owner opens its own.
  virtual os_result try_lock(std::uint64_t byte, lock_mode mode) noexcept = 0;

  /// Some lock of another description inside the range (not necessarily the lowest), clipped to
  /// it: 1 with `found` set, or 0 if there is none.
  virtual os_result find_lock(lock_range within, lock_range& found) noexcept = 0;

  /// Waits until the 32-bit word at `offset` is not `seen`, a wake, or the time-out; may also
  /// return early for no reason.
  virtual void wait_word(std::uint64_t offset, std::uint32_t seen,
                         std::chrono::milliseconds patience) noexcept = 0;

  /// Wakes whoever waits for the word at `offset`, in any process.
  virtual void wake_word(std::uint64_t offset) noexcept = 0;

  /// Says that the range is being stored to through a mapping of `descriptor()`; a double that
  /// compares pages at syncs needs to know.
  virtual void note_mapped_write(std::uint64_t offset, std::uint64_t bytes) noexcept {
    (void)offset;
    (void)bytes;
  }

  /// For mappings, which must be made from descriptions that hold no lock; -1 where there is no
  /// descriptor.
  virtual int descriptor() const noexcept { return -1; }

  /// In a forked child, of what its parent got from `open_unshared`: nothing works any more.
  virtual bool left_behind_by_fork() const noexcept { return false; }
};

enum class open_access : std::uint8_t { read, write };

/// Names to files.
/// Threads  every member may be called from any thread
class file_system {
 public:
  virtual ~file_system() = default;

  /// A new description of an existing regular file.
  virtual os_result open(const std::string& path, open_access access,
                         std::unique_ptr<open_file>& opened) noexcept = 0;

  /// The same for writing, for the locks of a writer: a forked child has no copy of it, and its
  /// locks go with it even if somebody has one.
  virtual os_result open_unshared(const std::string& path,
                                  std::unique_ptr<open_file>& opened) noexcept {
    return open(path, open_access::write, opened);
  }

  /// A new, empty file in the directory of `path` that has no name yet (or, where the file system
  /// knows no such thing, a temporary one that goes with the description).
  virtual os_result create_unnamed(const std::string& path, unsigned mode,
                                   std::unique_ptr<open_file>& created) noexcept = 0;

  /// Gives a file from `create_unnamed` its name; -EEXIST if that is taken.
  virtual os_result link(open_file& file, const std::string& path) noexcept = 0;

  virtual os_result rename(const std::string& from, const std::string& to) noexcept = 0;
  virtual os_result remove(const std::string& path) noexcept = 0;

  /// Makes names in the directory of `path` durable.
  virtual os_result sync_directory_of(const std::string& path) noexcept = 0;

  /// Which file the name leads to now.
  virtual os_result identify(const std::string& path, file_identity& identity) noexcept = 0;

  /// Sleeps between attempts to take a lock.
  virtual void pause(std::chrono::milliseconds duration) noexcept = 0;
};

/// The operating system's own files. It has no state: the one object serves everybody.
file_system& posix_files() noexcept;

}  // namespace shale::format
