// Opens a container by its name, and presents its file as a sequence of generations. The array
// floor uses these three classes:
//
//   container_file   finds the file that has the name, and makes objects of the other two
//   generation_view  one generation: immutable, pinned for as long as a copy lives
//   transaction      the next generation, by the one writer
//
// This floor starts no thread and knows no tensor. It allocates extents and records their owners.
// The floor above moves the elements, through `read` and `write` here or through mappings of
// `descriptor()`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/bytes/types.hpp"
#include "format/generations/generation_view.hpp"
#include "format/generations/replaced_file.hpp"
#include "format/os/bound_path.hpp"
#include "format/os/file_system.hpp"
#include "format/transaction/transaction.hpp"
#include "format/transaction/writer_lock_wait.hpp"
#include "shale/error.hpp"

namespace shale::format {

struct create_container_options {
  /// Absent: a random one. With a given one, the same calls make the same bytes.
  std::optional<uuid> id = std::nullopt;

  /// Permission bits, less the process's umask.
  unsigned mode = 0644;

  /// See `open_options`.
  bool sole_host = false;
};

struct open_options {
  /// Promises that no other host has the file open. Writing on a network file system needs this,
  /// because locks may be seen on this host only.
  bool sole_host = false;

  /// Readers only: reads the newest generation that a superblock describes, even if a later commit
  /// is lost.
  bool salvage = false;
};

/// An open container.
/// Threads  one thread at a time (the caller serialises), except `wait_newer`; the views and the
///          transaction that it makes do not need it any more
class container_file {
 public:
  /// Makes a container whose generation 1 is empty, and opens it for writing. It appears under its
  /// name whole or not at all. `named` is called when it has its name; if that throws, the name is
  /// taken back.
  /// Throws   already_exists, not_found (directory), access_denied, out_of_space, io,
  ///          unsupported (the file system does not honour open-file-description locks, or is a
  ///          network's and this is not `sole_host`), and exceptions of `named`
  static container_file create(const bound_path& place,
                               const create_container_options& options = {},
                               const std::function<void()>& named = {});
  static container_file create(file_system& files, const std::string& path,
                               const create_container_options& options = {}) {
    return create(bound_path(files, path), options);
  }

  /// The path leads to the same directory from now on; the file of that name there may change.
  /// Throws   not_found, access_denied, corrupt, unsupported (later format, no locks, or a network
  ///          file system without `sole_host`), busy (another program's lock is in the way), io
  static container_file open(const bound_path& place, open_access access,
                             const open_options& options = {});
  static container_file open(file_system& files, const std::string& path, open_access access,
                             const open_options& options = {}) {
    return open(bound_path(files, path), access, options);
  }

  container_file(container_file&&) noexcept;
  container_file& operator=(container_file&&) noexcept;
  ~container_file();

  const std::string& path() const noexcept;
  const uuid& id() const noexcept;
  open_access access() const noexcept;

  /// The newest generation, pinned. It is the same view as before if nothing newer was committed.
  /// Waits for nobody. Follows the name when a compacted file has taken it.
  /// Throws   corrupt, io
  generation_view latest();

  /// Begins the next generation: waits for the writer lock, then takes step commit.1 and scans the
  /// pins (commit.2).
  /// Throws   busy (not within `timeout`), access_denied (opened for reading), io (a reader holds a
  ///          generation above the newest; or this object is poisoned), corrupt
  transaction begin(std::chrono::milliseconds timeout);

  /// Waits until a generation above `seen` is published, for at most `timeout`. Returns its number,
  /// or nothing if there is none.
  std::optional<std::uint64_t> wait_newer(std::uint64_t seen,
                                          std::chrono::milliseconds timeout) const;

  /// The generations that readers in all processes hold now.
  std::vector<generation_range> pinned() const;

  /// Whether a sync or a write-back has failed, so that `begin` refuses.
  bool poisoned() const noexcept;

 private:
  struct state;
  explicit container_file(std::unique_ptr<state> made) noexcept;
  std::unique_ptr<state> state_;
};

}  // namespace shale::format
