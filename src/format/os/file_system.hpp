// The interface to the operating system. Everything that the format floor asks of it goes through
// here, so that tests can record every write, fail the n-th call, replay every crash and interleave
// writers, readers and kills.
//
// Calls answer as the kernel does: >= 0 is success (or a count), < 0 is -errno. They may be
// interrupted (-EINTR) and may move fewer bytes than asked. `file_io.hpp` holds the loops, and
// turns failures into `shale::error`.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "format/bytes/types.hpp"

namespace shale::format {

/// The kernel's answer: >= 0 success, < 0 -errno.
using os_result = std::int64_t;

enum class lock_mode : std::uint8_t { shared, exclusive };

/// Identifies a file independently of its names.
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

/// A lock that another description holds, as the kernel reports it.
struct found_lock {
  lock_range range;  ///< the whole lock, also its part outside the range that was asked for
  lock_mode mode = lock_mode::exclusive;

  /// The process that holds it; 0 if the kernel does not report it (for description locks it never
  /// does).
  std::int64_t process = 0;
};

/// One open file description. It owns its locks, and they are released only when it is destroyed
/// (see the lock map in docs/container-format.md). A forked child's copy keeps them alive, except
/// those of a description from `open_unshared`.
/// Threads  pread and pwrite may be called from several threads at once
class open_file {
 public:
  virtual ~open_file() = default;

  virtual os_result pread(bytes_span into, std::uint64_t offset) noexcept = 0;
  virtual os_result pwrite(bytes_view bytes, std::uint64_t offset) noexcept = 0;

  /// Reserves space for the range; grows the file if it ends beyond its size. Bytes that were not
  /// there before read as zeros.
  virtual os_result allocate(std::uint64_t offset, std::uint64_t bytes) noexcept = 0;

  /// Whether the whole range, which lies inside the file, surely has blocks of this file alone that
  /// a write uses. In doubt false.
  virtual bool has_space_for(std::uint64_t offset, std::uint64_t bytes) noexcept {
    return (void)offset, (void)bytes, false;
  }

  /// Makes the range read as zeros, and gives its space back where the file system can do so. Never
  /// changes the size.
  virtual os_result punch(std::uint64_t offset, std::uint64_t bytes) noexcept = 0;

  /// Calls fdatasync, which also covers stores through mappings of the same file.
  virtual os_result sync_data() noexcept = 0;

  /// Consumes the write-back errors that wait for this description, so that its syncs report only
  /// later ones. Writes nothing, unless the system lacks sync_file_range.
  virtual void discard_old_errors() noexcept {}

  /// Lets the page cache forget whole pages of the range that need not be written, and large pages
  /// of the cache that lie partly in it. Changes no byte of the file. Returns whether none of the
  /// range is left in the cache: the kernel keeps a large page that somebody has mapped.
  virtual bool drop_cached(std::uint64_t offset, std::uint64_t bytes) noexcept {
    return (void)offset, (void)bytes, true;
  }

  virtual os_result truncate(std::uint64_t bytes) noexcept = 0;
  virtual os_result size() noexcept = 0;
  virtual os_result identify(file_identity& identity) noexcept = 0;

  /// Takes a lock on one byte for this description, or answers -EAGAIN at once. Locks of one
  /// description do not exclude each other: every lock owner opens its own.
  virtual os_result try_lock(std::uint64_t byte, lock_mode mode) noexcept = 0;

  /// Finds a lock of another description that has bytes in the range (not necessarily the lowest).
  /// Answers 1 and sets `found`, or answers 0 if there is none.
  virtual os_result find_lock(lock_range within, found_lock& found) noexcept = 0;

  /// The processes that hold the lock, for messages; "" if it cannot be told. Slow: looks at every
  /// process.
  virtual std::string holders_of(const found_lock& lock) const { return (void)lock, std::string(); }

  /// Opens another description of the same file for reading, even if the file has another name now.
  virtual os_result open_again(std::unique_ptr<open_file>& again) noexcept {
    (void)again;
    return -EOPNOTSUPP;
  }

  /// The name that the file has now, for messages; "" if it cannot be told.
  virtual std::string present_name() const { return {}; }

  /// Whether other hosts may have the file open. This host does not see their locks.
  virtual bool is_remote() const noexcept { return false; }

  /// Waits until the 32-bit word at `offset` differs from `seen`, until another thread or process
  /// wakes it, or until `timeout` has passed. It may also return early.
  virtual void wait_word(std::uint64_t offset, std::uint32_t seen,
                         std::chrono::milliseconds timeout) noexcept = 0;

  /// Wakes all waiters on the word at `offset`, in this and in other processes.
  virtual void wake_word(std::uint64_t offset) noexcept = 0;

  /// Tells a test double, which compares pages at syncs, that the range is being stored to through
  /// a mapping of `descriptor()`.
  virtual void note_mapped_write(std::uint64_t offset, std::uint64_t bytes) noexcept {
    (void)offset;
    (void)bytes;
  }

  /// The descriptor for mappings; -1 if there is none. Mappings must be made from descriptions that
  /// hold no lock.
  virtual int descriptor() const noexcept { return -1; }

  /// Whether this process is a forked child and its parent opened this description with
  /// `open_unshared`. In that case every call fails, unless the child was made without the handlers
  /// of fork (clone): it must then leave the description alone.
  virtual bool left_behind_by_fork() const noexcept { return false; }
};

/// A directory that is held open.
class open_directory {
 public:
  virtual ~open_directory() = default;

  /// Makes the names in the directory durable. Fails also if the file system has shut itself down,
  /// whatever it answers to fsync.
  virtual os_result sync_names() noexcept = 0;
};

enum class open_access : std::uint8_t { read, write };

/// Names to files.
/// Threads  every member may be called from any thread
class file_system {
 public:
  virtual ~file_system() = default;

  /// Resolves `path` once, following it if it is a link. `bound` becomes a file system that is
  /// rooted in the directory of the file, and `name` becomes the file's name in that directory. If
  /// links, the working directory or the directory's own name change later, both still lead to the
  /// same place. `bound` stays null in file systems whose names never change their meaning.
  virtual os_result bind(const std::string& path, std::shared_ptr<file_system>& bound,
                         std::string& name) noexcept {
    (void)path, (void)bound, (void)name;
    return 0;
  }

  /// A new description of an existing regular file. If another process holds a lease on the file,
  /// this waits until it gives the lease back or loses it.
  virtual os_result open(const std::string& path, open_access access,
                         std::unique_ptr<open_file>& opened) noexcept = 0;

  /// A new description for writing, which takes the locks of a writer. A forked child gets no copy
  /// of it. Destroying it releases its locks even if some process has a copy.
  virtual os_result open_unshared(const std::string& path,
                                  std::unique_ptr<open_file>& opened) noexcept {
    return open(path, open_access::write, opened);
  }

  /// A new, empty file in the directory of `path`. It has no name yet; where the file system cannot
  /// do that, it has a temporary one that is removed with the description.
  virtual os_result create_unnamed(const std::string& path, unsigned mode,
                                   std::unique_ptr<open_file>& created) noexcept = 0;

  /// Gives a file from `create_unnamed` its name; -EEXIST if that is taken. No file is replaced.
  virtual os_result link(open_file& file, const std::string& path) noexcept = 0;

  virtual os_result rename(const std::string& from, const std::string& to) noexcept = 0;

  /// Gives the file that `source` calls `from` the name `to` of this file system. Both must come
  /// from `bind` of one file system, or be that file system.
  virtual os_result rename_from(file_system& source, const std::string& from,
                                const std::string& to) noexcept {
    return (void)source, rename(from, to);
  }
  virtual os_result remove(const std::string& path) noexcept = 0;

  /// Opens the directory of `path`. A caller that changes a name and then makes it durable opens
  /// the directory first, so that the second step needs no descriptor.
  virtual os_result open_directory_of(const std::string& path,
                                      std::unique_ptr<open_directory>& opened) noexcept = 0;

  /// Identifies the file that the name leads to now.
  virtual os_result identify(const std::string& path, file_identity& identity) noexcept = 0;

  /// Sleeps between attempts to take a lock. Returns the time that has passed, which may be much
  /// longer than `duration` on a busy machine.
  virtual std::chrono::microseconds pause(std::chrono::milliseconds duration) noexcept = 0;
};

/// The operating system's own files. It has no state: the one object serves everybody.
file_system& posix_files() noexcept;

}  // namespace shale::format
