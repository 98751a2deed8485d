// Collects the write-back errors of one file, from the moment the file gets its name until it is
// durable.
//
// The kernel reports a write-back error once to each open file description. A description that is
// opened after the error gets the report only if no other one has received it. So a description
// that is opened just for the last sync misses the error if a mapping was flushed before, or if
// another process has synced the file.
//
// Invariants
//   awaited.1  the description for the last sync is opened when the file gets its name, before its
//              maker writes. It is used for nothing else. The record of the errors that others in
//              this process receive is made at the same time. If the maker does not announce the
//              file, `look` makes both, and errors that others received before are not found
//   awaited.2  an error is permanent: every later `sync` and `check` throws it
//   awaited.3  if its maker announced the file, no other file that takes its name is ever watched:
//              anyone who may write to the folder can exchange names at any time
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "storage/files/file_descriptor.hpp"
#include "storage/files/write_back_record.hpp"

namespace shale::detail {

/// Distinguishes a file from all others, whatever their names are.
struct file_identity {
  dev_t device = 0;
  ino_t inode = 0;

  /// The identity of an open file; nothing if there is none, or the system does not tell.
  static std::optional<file_identity> of(int descriptor) noexcept;
  bool operator==(const file_identity&) const = default;
};

/// Threads  `appeared` may be called from any thread; other members by one thread at a time
class awaited_file {
 public:
  /// `path` is compared as text with the paths that are passed to `appeared`.
  explicit awaited_file(std::string path);
  ~awaited_file();
  awaited_file(const awaited_file&) = delete;
  awaited_file& operator=(const awaited_file&) = delete;

  /// Announces that the file `made` has just got this name. Call it before anything else can use
  /// the file. Without an identity, it is the file that has the name now.
  static void appeared(const std::string& path, const std::optional<file_identity>& made) noexcept;

  /// The same for an open file. Its identity is read only if somebody awaits a file.
  static void appeared(const std::string& path, int made) noexcept;

  /// Looks for a file that got the name without being announced. Call it before the file is
  /// written, because errors that others have received by then are missed. A file that is already
  /// watched stays watched, with one exception: if it was not announced and another file has taken
  /// its name, the other file is watched instead.
  void look() noexcept;

  /// A descriptor of the watched file, for changes of its owner and permissions; -1 if none is
  /// watched.
  int descriptor() const noexcept { return watching_.get(); }

  /// Makes the watched file durable. If no file was announced by `appeared` or found by `look`, it
  /// uses the file that has the name now, and gets only errors that no description has received.
  /// Throws   io, out_of_space; not_found. `shown` is the file for messages
  void sync(const std::string& shown);

  /// Throws   io if the name in that folder leads to another file than the announced one or the
  ///          watched one;
  ///          invalid_argument if it is not a regular file
  void require_name(int folder, const std::string& name, const std::string& shown) const;

  /// Throws   io or out_of_space if bytes are known to be lost
  void check(const std::string& shown) const;

 private:
  void look_locked() noexcept;

  const std::string path_;
  std::optional<file_identity> announced_;
  file_descriptor watching_;
  std::shared_ptr<write_back_record> errors_;  // null if no file is watched
  int unwatched_ = 0;  // the errno value that kept a file from being watched, or 0

  // Whether an announced file could not be watched when it was made. A description that is opened
  // later does not get errors that others have received by then, so `sync` fails. It can still be
  // used to set owner and permissions.
  bool is_missed_ = false;
};

}  // namespace shale::detail
