// A file that appears under its name only when it is whole.
#pragma once

#include <mutex>
#include <string>
#include <type_traits>

namespace shale::tools {

/// Whether an existing file may be replaced.
enum class replacing : bool { refuse, allow };

/// A path beside `target` to write to. `publish` moves it there; without it, it is removed.
/// Invariant  whoever looks at `target` sees what was there before, or all that was written
class partial_file {
 public:
  /// Throws   already_exists (the target, unless it may be replaced), invalid_argument (it is no
  ///          regular file), access_denied and not_found (the directory)
  partial_file(std::string target, replacing policy);
  ~partial_file();
  partial_file(const partial_file&) = delete;
  partial_file& operator=(const partial_file&) = delete;

  /// Where to write. Nothing exists there before `make`.
  const std::string& path() const noexcept { return path_; }

  /// Calls `body`, which makes a file at path(); it does not race with the end of the process.
  template <class Body>
  std::invoke_result_t<Body&> make(Body&& body) const {
    const auto creating = creation();
    return body();
  }

  /// Makes the bytes durable, then gives them their name, which becomes durable too. A replaced
  /// file hands on its permissions.
  /// Throws   already_exists if somebody else made the target meanwhile, io
  void publish();

 private:
  static std::unique_lock<std::mutex> creation();

  std::string target_;
  std::string path_;
  replacing policy_;
};

/// Ends the process at once, without destructors: partial files of all threads and the library's
/// unfinished ones are removed, and none is made any more.
[[noreturn]] void exit_without_partial_files(int code) noexcept;

/// Whether anything exists at `path`.
bool file_exists(const std::string& path) noexcept;

/// Throws   not_found, access_denied, io
unsigned long long file_bytes(const std::string& path);

}  // namespace shale::tools
