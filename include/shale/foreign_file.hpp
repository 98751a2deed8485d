// What the writers of foreign formats have in common. Every one of them writes beside the target
// under a name of its own, makes that durable and then renames it: whoever looks at the target sees
// what was there before, or all that was written, also after a crash.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

namespace [[gnu::visibility("default")]] shale {

/// What happens to a file that already has the name.
enum class existing_file : std::uint8_t {
  replace,  ///< it gives way once the new file is whole; mappings of it keep their bytes
  refuse,   ///< already_exists, before and after the work
};

/// A file of any format on its way to its name: made beside it under another, which it leaves when it
/// is whole. Without `publish` it is removed. Symbolic links at the name stay, and the file that they
/// lead to is replaced.
class unfinished_file {
 public:
  /// Makes nothing yet.
  /// Throws   already_exists (the target, unless it may be replaced), invalid_argument (it is there
  ///          and no regular file), not_found and access_denied (its folder)
  unfinished_file(const std::string& target, existing_file existing);
  ~unfinished_file();
  unfinished_file(unfinished_file&& other) noexcept;
  unfinished_file& operator=(unfinished_file&& other) noexcept;

  /// What it is written for, behind links.
  const std::string& target() const noexcept { return target_; }

  /// Where to make and write it, in the same folder. The name is no other writer's.
  const std::string& path() const noexcept { return path_; }

  /// While one lives the process does not end by `exit_without_unfinished_files`, which removes only
  /// what is there. Not to be held for long.
  class creation {
   public:
    creation();  ///< waits for those of other threads
    ~creation();
    creation(const creation&) = delete;
    creation& operator=(const creation&) = delete;
  };

  /// Returns  what `body` does, which makes the file at path(); it may make others, but not wait for
  ///          threads that do
  template <class Body>
  std::invoke_result_t<Body&> create(Body&& body) const {
    const creation held;
    return body();
  }

  /// Makes the bytes durable through a descriptor of its own, then gives the file its name and makes
  /// that durable too. A replaced file hands on its permissions.
  /// Throws   already_exists, if somebody made the target meanwhile; io, also where the name is
  ///          there but may be gone after a power cut
  void publish();

  /// The same for bytes that the caller has made durable.
  void publish_durable();

 private:
  std::string target_;
  std::string path_;  // empty once published
  existing_file existing_ = existing_file::replace;
};

/// Ends the process at once, as at a second Ctrl-C: no destructor runs and no stream is flushed, but
/// the unfinished files of this process, those of its writers included, are removed, and none is
/// made before the end.
/// Threads  any, but no signal handler: it takes a lock
[[noreturn]] void exit_without_unfinished_files(int status) noexcept;

}  // namespace shale
