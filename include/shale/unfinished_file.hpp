// Files that appear under their name only when they are complete. All writers of foreign formats
// use this: they write beside the target under another name, make the bytes durable and then rename
// the file. So the target is always the old file or the complete new one, even after a crash.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include "shale/error.hpp"
#include "shale/existing_file.hpp"

namespace [[gnu::visibility("default")]] shale {

/// A file of any format under a temporary name, in the folder of its target. `publish` gives it the
/// target's name; a file that was not published is removed by the destructor. If the target is a
/// symbolic link, the file that the link leads to is replaced.
/// Threads  calls on one object must not overlap; different objects are independent
/// Lifetime belongs to the process that made it. In a forked child its calls throw
///          invalid_argument, and its destructor removes nothing
class unfinished_file {
 public:
  /// Chooses a temporary name, but makes no file yet. A relative path is resolved now. The folder
  /// is held open, so that the file is found again after the folder was renamed. A target that
  /// `publish` could not replace is refused here already, if the system tells that in advance.
  /// Throws   already_exists (unless the target may be replaced), invalid_argument (the target is
  ///          no regular file, or a mount point; its name is empty, is too long or has a zero byte;
  ///          `keep`), not_found (the folder), access_denied (the folder; the target is immutable,
  ///          append-only, or another user's in a sticky folder), out_of_memory, io (also if the
  ///          system does not tell whether there is a file)
  unfinished_file(const std::string& target, existing_file existing);
  ~unfinished_file();
  unfinished_file(unfinished_file&& other) noexcept;
  unfinished_file& operator=(unfinished_file&& other) noexcept;

  /// The path that the file gets at the end, with symbolic links resolved.
  const std::string& target() const noexcept { return target_; }

  /// The temporary path, which no other writer uses. Make and write the file there. Empty after
  /// `publish` and after a move.
  const std::string& path() const noexcept { return path_; }

  /// The permission bits to make the file with; the system removes the umask from them. They are
  /// 0600 if there was a file to replace, and `publish` sets the permissions of that file: until
  /// then, nobody can open the new bytes who may not read the old ones. Otherwise they are 0666.
  unsigned mode() const noexcept;

  /// While an object of this class exists, `exit_without_unfinished_files` waits in other threads,
  /// and so does `raise_without_unfinished_files`. Hold one while you make a file, for a short time
  /// only: make it empty, and let it grow later. A thread may hold several at once.
  class creation {
   public:
    /// Never throws. Does not return if another thread is ending the process.
    creation();
    ~creation();
    creation(const creation&) = delete;
    creation& operator=(const creation&) = delete;
  };

  /// Calls `body`, which makes the file at path(), inside a `creation`, and returns its result.
  /// `body` may make other files too, and wait for threads that do. Let it make the file empty, and
  /// write the file afterwards: `publish` may miss bytes that are lost before `body` returns.
  /// Throws   invalid_argument (published, moved from, in a forked child; a null pointer or an
  ///          empty function object), and what `body` throws, as `naming_target` does
  template <class Body>
  std::invoke_result_t<Body&> create(Body&& body) const {
    require_pending();
    detail::require_callable(body);
    const creation held;
    const struct watch {
      const unfinished_file& made;
      ~watch() { made.look(); }
    } watched{*this};
    return naming_target(body);
  }

  /// Calls `body`, which writes the file, and returns its result.
  /// Throws   invalid_argument (a null pointer or an empty function object), and whatever `body`
  ///          throws. An `error` names target() wherever it named path(), which is gone or renamed
  ///          when somebody reads the text
  template <class Body>
  std::invoke_result_t<Body&> naming_target(Body&& body) const {
    detail::require_callable(body);
    try {
      return body();
    } catch (error& failure) {
      failure.replace_in_text(path_, target_);
      throw;
    }
  }

  /// The user and the group that a file belongs to, as numbers.
  struct owner {
    unsigned user = 0;
    unsigned group = 0;
  };

  /// The owners of the two files that get one name after the other.
  struct owners {
    owner replaced;  ///< of the file to be replaced
    owner made;      ///< of the new file
  };

  /// Gives the file at path() the permissions and the access list, and if possible the owner and
  /// the group, that `publish` gives it: for a file that gets its name by other means, such as
  /// `transaction::replace_by`.
  /// Returns  the owners of both files, which differ if this process may not set them; nothing if
  ///          there is no file to replace
  /// Throws   invalid_argument (published, moved from, in a forked child; no regular file is at
  ///          path()), not_found (nothing is there), io (another file is there, it cannot be
  ///          opened, or the system does not tell owner and permissions of one of the files)
  std::optional<owners> take_over_owner();

  /// Makes the bytes durable, gives the file the name of the target, and makes the name durable.
  /// The file gets the permissions of a file that it replaces, without set-user-ID, set-group-ID
  /// and sticky bits, its access list (a POSIX ACL), and its owner and group if this process may
  /// set them. If another file has taken the target's name since this object was made, the new file
  /// gets only permissions that both files have, and only an owner, a group and a list that both
  /// have. If the new file cannot get the group of the old one, group and others get only
  /// permissions that both had. If the list cannot be handed on, only the owner gets permissions.
  ///
  /// The system reports a failed write only once. `publish` finds failures even if a flush or another
  /// process got the report, but it misses those that were reported before a certain time:
  ///   - if `create_file` made the file: before it was made, so none are missed
  ///   - if `body` made the file in other ways, called by `create`: before `body` returned
  ///   - in all other cases: before the first call of `publish`
  /// So a `body` that writes should sync the file through the descriptor that wrote, and throw if
  /// that fails.
  /// Cost     a sync of the file and one of the folder
  /// Throws   invalid_argument (published, moved from, in a forked child); already_exists
  ///          (with `refuse`: the target was made meanwhile); io and out_of_space, also at each
  ///          further call, if bytes are lost; not_found (nothing is at path()); access_denied; io
  ///          if another file is at path(), if it cannot be opened to get the permissions, if the
  ///          system does not tell owner and permissions of one of the files, or if the folder
  ///          could not be synced after the rename, or its file system has shut itself down: the
  ///          target is there, but may be gone after a power cut
  void publish();

  /// As `publish`, but does not sync the file: the caller has made its bytes durable.
  /// Throws   as publish
  void publish_durable();

 private:
  void begin(const std::string& target);
  void take_name();
  void require_made() const;
  void require_pending() const;
  void look() const noexcept;

  struct pending;

  std::string target_;
  std::string path_;  // empty once published
  existing_file existing_ = existing_file::replace;
  std::shared_ptr<pending> pending_;  // until it is published
};

/// Removes all unfinished files of this process, including those of its writers, and ends the
/// process at once, as for a second Ctrl-C. No destructor is called and no stream is flushed.
/// Threads  any thread, but no signal handler: it takes a lock, and waits for threads that hold a
///          `creation`
[[noreturn]] void exit_without_unfinished_files(int status) noexcept;

/// Removes the same files, and ends the process by the default action of the signal `number`, so
/// that a parent process sees which signal ended it. If that action does not end the process, it
/// exits with 128 + `number`.
/// Threads  as `exit_without_unfinished_files`
[[noreturn]] void raise_without_unfinished_files(int number) noexcept;

}  // namespace shale
