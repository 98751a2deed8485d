// Containers: .shale files with named arrays. Each commit makes a new generation of the file. A
// snapshot reads one generation, which stays as it is; one transaction at a time writes the next.
// This header includes those of snapshots, transactions and arrays.
//
//   auto file = container::create("survey.shale");
//   auto change = file.begin();
//   change.create("dem", {.dtype = dtype::float32, .shape = {344, 403}}).write(values);
//   change.commit();
//   tensor dem = file.latest().at("dem").map();   // zero-copy, valid over later commits
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "shale/array.hpp"
#include "shale/attribute_value.hpp"
#include "shale/pending_commit.hpp"
#include "shale/snapshot.hpp"
#include "shale/space_report.hpp"
#include "shale/transaction.hpp"
#include "shale/verification.hpp"
#include "shale/writable_array.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The longest time that a call may wait. A value below 0 counts as 0, and one above 100 years as
/// 100 years. (<chrono> would add 3,000 lines to every file that includes this header.)
struct timeout {
  std::int64_t ms = 0;
};

/// `no_wait` does not wait. `wait_default` waits for up to ten seconds.
inline constexpr timeout no_wait{0};
inline constexpr timeout wait_default{10'000};

/// The operations that a handle allows.
enum class open_mode : std::uint8_t {
  read,               ///< snapshots only; needs only the right to read
  write,              ///< snapshots and transactions
  write_exclusively,  ///< also on network file systems; you promise that no other host has it open
  salvage,            ///< as read; if the newest commit is lost, reads the generation before it
};

/// A handle to an open container. Copies share it.
/// Throws   invalid_argument from every member but `close`, if the handle was moved from
/// Threads  every member may be called from any thread
class container {
 public:
  /// Makes a new file with an empty generation and opens it. The umask of the process is removed
  /// from the permission bits.
  /// Throws   already_exists; out_of_space; invalid_argument (a mode that only reads; permissions
  ///          with other bits than 0777, or without 0600, which the owner needs); and as `open`. No
  ///          file is left behind then
  static container create(const std::string& path, open_mode mode = open_mode::write,
                          unsigned permissions = 0644);

  /// Opens an existing file. The path is resolved once, to a name in a folder; later changes of the
  /// working directory or of links have no effect. If another container takes the name later, as by
  /// `replace_by`, calls throw io: open the name again. `open_if_exists` returns nothing instead of
  /// throwing not_found; `open_or_create` creates the file if it does not exist.
  /// Cost     a few page reads; 3 descriptors, and 16 at most for snapshots
  /// Throws   not_found, access_denied (permissions), unsupported (a later format; for writing, a
  ///          network file system)
  ///          invalid_argument (a folder, a device or a pipe; a name that is too long)
  ///          corrupt (no container, or damaged; also if only the newest commit cannot be found,
  ///          except with open_mode::salvage)
  ///          busy (a lock of another program is in the way), out_of_memory, io
  static container open(const std::string& path, open_mode mode = open_mode::read);
  static std::optional<container> open_if_exists(const std::string& path,
                                                 open_mode mode = open_mode::read);
  static container open_or_create(const std::string& path, open_mode mode = open_mode::write);

  /// The path that was given to `create` or `open`, for messages.
  const std::string& path() const;

  /// The identifier of the container, 16 bytes as lower-case hexadecimal digits with dashes. It
  /// never changes.
  /// Throws   out_of_memory, and as every member
  std::string uuid() const;

  /// Pins the newest generation. It never waits for a writer and never blocks one.
  /// Throws   invalid_argument (closed), io (also if another container took the name), not_found
  ///          (no file has the name any more), corrupt, unsupported (a later format),
  ///          access_denied, out_of_memory
  snapshot latest() const;

  /// Begins the next generation. Waits for transactions of other threads and processes, up to
  /// `limit`. If commits of `transaction::commit_async` are under way, it begins with their
  /// changes. If 1,024 of them are under way, or if another process waits to write, it waits
  /// until they are durable.
  /// Cost     some 30 system calls. If another process may have written since this one last
  ///          committed, it also writes both superblocks again, and syncs the device once
  /// Throws   as latest; busy (the time is over), access_denied (a mode that only reads),
  ///          unsupported (on a network file system), out_of_space, io (also if an earlier sync of
  ///          this container, or a commit_async, failed)
  transaction begin(timeout limit = wait_default);

  /// Waits until there is a generation with a number above `seen`, up to `limit`. Returns the
  /// newest number, or nothing if the time is over.
  /// Throws   as latest
  std::optional<std::uint64_t> wait_newer(std::uint64_t seen, timeout limit) const;

  /// Checks all metadata and all elements of the newest generation. Damage is reported as findings,
  /// not as exceptions. An array of a later version is not damage: the result names it.
  /// Cost     reads all bytes of the generation, in parallel. In a damaged or hostile file, arrays
  ///          may name the same bytes many times. That costs no more, because at most as many bytes
  ///          as the file has are read
  /// Throws   as latest; cancelled
  verification verify() const;

  /// Reports how many bytes of the file are taken by the arrays of the newest generation, by its
  /// metadata, by older generations that are held, and by free space. For an array of a later
  /// version, the report has a problem instead.
  /// Cost     reads all metadata, and no element
  /// Throws   as latest; corrupt also for damaged metadata of any array
  space_report space() const;

  /// Closes the file for all copies of this handle: their calls, except `path` and `uuid`, throw
  /// invalid_argument then. Snapshots, arrays, tensors and a running transaction stay valid, and
  /// asynchronous commits go on. Never throws, even if the handle was moved from: a commit has
  /// synced everything before it returned, or its `pending_commit` reports the error.
  void close();

 private:
  struct implementation;
  explicit container(std::shared_ptr<implementation> made) noexcept;
  implementation& state() const;
  std::shared_ptr<implementation> implementation_;
};

}  // namespace shale
