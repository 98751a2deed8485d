// Implements file_system.hpp with Linux system calls.

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "core/never_destroyed.hpp"
#include "format/os/descriptors_kept_from_children.hpp"
#include "format/os/file_system.hpp"
#include "format/os/posix_calls.hpp"
#include "format/os/posix_file.hpp"
#include "storage/files/file_descriptor.hpp"
#include "storage/files/folder_sync.hpp"
#include "storage/files/opening.hpp"
#include "storage/files/partial_path.hpp"
#include "storage/system/file_facts.hpp"

namespace shale::format {
namespace {

bool is_proc(int directory) noexcept {
  struct statfs status {};
  return ::fstatfs(directory, &status) == 0 && status.f_type == PROC_SUPER_MAGIC;
}

struct posix_directory final : open_directory {
  starting_directory held;

  os_result sync_names() noexcept override { return -shale::detail::sync_folder(held.descriptor); }
};

class posix_file_system final : public file_system {
 public:
  /// Relative names begin in `parent`.
  explicit posix_file_system(std::shared_ptr<const starting_directory> parent) noexcept
      : directory_(std::move(parent)) {}

  os_result bind(const std::string& path, std::shared_ptr<file_system>& bound,
                 std::string& name) noexcept override {
    return unless_out_of_memory([&]() -> os_result {
      std::shared_ptr<const starting_directory> parent = directory_;
      std::string rest = path;
      for (int followed = 0; followed <= shale::detail::links_followed_max; ++followed) {
        if (rest.empty()) return -ENOENT;
        std::string last = rest.substr(rest.find_last_of('/') + 1);
        if (last.empty()) last = ".";  // the path names a directory: opening it fails later
        auto held = std::make_shared<starting_directory>();
        held->descriptor = shale::detail::open_at(
            parent->descriptor, shale::detail::directory_of(rest).c_str(), O_PATH | O_DIRECTORY);
        if (held->descriptor < 0) return -errno;
        parent = std::move(held);
        char target[4096];
        const ssize_t length =
            ::readlinkat(parent->descriptor, last.c_str(), target, sizeof target);
        // It is not a link. If anything else is wrong, opening it reports that. Links in /proc are
        // not followed by their text: they lead to open files, which may have no name.
        if (length < 0 || is_proc(parent->descriptor)) {
          bound = std::make_shared<posix_file_system>(std::move(parent));
          name = std::move(last);
          return 0;
        }
        if (length == sizeof target) return -ENAMETOOLONG;
        rest.assign(target, static_cast<std::size_t>(length));
      }
      return -ELOOP;
    });
  }

  os_result open(const std::string& path, open_access access,
                 std::unique_ptr<open_file>& opened) noexcept override {
    const int flags = (access == open_access::write ? O_RDWR : O_RDONLY) | O_NOCTTY;
    const int descriptor = shale::detail::open_past_leases(folder(), path, flags);
    if (descriptor < 0) return -errno;
    shale::detail::file_facts facts;
    os_result result = -shale::detail::facts_of(descriptor, facts);
    if (result == 0 && !S_ISREG(facts.mode)) result = S_ISDIR(facts.mode) ? -EISDIR : -EINVAL;
    return adopt(descriptor, {}, result, opened);
  }

  os_result open_unshared(const std::string& path,
                          std::unique_ptr<open_file>& opened) noexcept override {
    for (;;) {
      const std::int64_t before = forks_begun();
      if (before < 0) return before;
      const os_result result = open(path, open_access::write, opened);
      if (result < 0 || static_cast<posix_file&>(*opened).keep_from_children(before)) return result;
      opened.reset();
    }
  }

  os_result create_unnamed(const std::string& path, unsigned mode,
                           std::unique_ptr<open_file>& created) noexcept override {
    return unless_out_of_memory([&] { return try_create_unnamed(path, mode, created); });
  }

  os_result link(open_file& file, const std::string& path) noexcept override {
    return static_cast<posix_file&>(file).give_name(*directory_, path);
  }

  os_result rename(const std::string& from, const std::string& to) noexcept override {
    return rename_from(*this, from, to);
  }

  os_result rename_from(file_system& source, const std::string& from,
                        const std::string& to) noexcept override {
    const int folder_before = static_cast<posix_file_system&>(source).folder();
    return answer(::renameat(folder_before, from.c_str(), folder(), to.c_str()));
  }

  os_result remove(const std::string& path) noexcept override {
    return answer(::unlinkat(folder(), path.c_str(), 0));
  }

  os_result open_directory_of(const std::string& path,
                              std::unique_ptr<open_directory>& opened) noexcept override {
    return unless_out_of_memory([&]() -> os_result {
      const std::string around = shale::detail::directory_of(path);
      auto made = std::make_unique<posix_directory>();
      made->held.descriptor =
          shale::detail::open_at(folder(), around.c_str(), O_RDONLY | O_DIRECTORY);
      if (made->held.descriptor < 0) return -errno;
      opened = std::move(made);
      return 0;
    });
  }

  os_result identify(const std::string& path, file_identity& identity) noexcept override {
    shale::detail::file_facts facts;
    const int failed = shale::detail::facts_of(folder(), path.c_str(), facts);
    if (failed == 0) identity = identity_from(facts);
    return -failed;
  }

  std::chrono::microseconds pause(std::chrono::milliseconds duration) noexcept override {
    using clock = std::chrono::steady_clock;
    const clock::time_point start = clock::now();
    // Signals do not shorten the pause, so that callers do not look at the lock more often.
    timespec left = to_timespec(duration);
    while (::nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
    return std::chrono::ceil<std::chrono::microseconds>(clock::now() - start);
  }

 private:
  // Composing names takes memory, and no call may throw.
  template <class Body>
  static os_result unless_out_of_memory(Body&& body) noexcept {
    try {
      return body();
    } catch (const std::bad_alloc&) {
      return -ENOMEM;
    }
  }

  int folder() const noexcept { return directory_->descriptor; }

  os_result try_create_unnamed(const std::string& path, unsigned mode,
                               std::unique_ptr<open_file>& created) const {
    const std::string around = shale::detail::directory_of(path);
    // A nameless file gets its name through /proc. Without /proc, a temporary name is used instead.
    if (::access("/proc/self/fd", X_OK) == 0) {
      const int descriptor =
          shale::detail::open_at(folder(), around.c_str(), O_TMPFILE | O_RDWR, mode);
      if (descriptor >= 0) return adopt(descriptor, {}, 0, created);
      if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) return -errno;
    }
    for (int attempt = 0; attempt < 16; ++attempt) {
      std::uint64_t noise = 0;
      if (::getrandom(&noise, sizeof noise, 0) != sizeof noise) return -EIO;
      std::string temporary = fmt::format("{}.{:016x}.tmp", path, noise);
      const int descriptor =
          shale::detail::open_at(folder(), temporary.c_str(), O_RDWR | O_CREAT | O_EXCL, mode);
      if (descriptor >= 0) return adopt(descriptor, std::move(temporary), 0, created);
      if (errno != EEXIST) return -errno;
    }
    return -EEXIST;
  }

  // Takes the descriptor and, if it has one, its temporary name; gives both up on failure.
  os_result adopt(int descriptor, std::string temporary, os_result result,
                  std::unique_ptr<open_file>& into) const noexcept {
    if (result >= 0) {
      // If there is no memory, nothing was moved from the name.
      into.reset(new (std::nothrow) posix_file(descriptor, std::move(temporary), directory_));
      if (into != nullptr) return 0;
      result = -ENOMEM;
    }
    // NOLINTNEXTLINE(bugprone-use-after-move)
    if (!temporary.empty()) ::unlinkat(folder(), temporary.c_str(), 0);
    ::close(descriptor);
    return result;
  }

  std::shared_ptr<const starting_directory> directory_;
};

}  // namespace

file_system& posix_files() noexcept {
  // Both objects are never destroyed, because static objects may hold containers. The shared_ptr
  // owns nothing: the working directory needs no closing.
  static shale::detail::never_destroyed<starting_directory> here;
  static shale::detail::never_destroyed<posix_file_system> files(
      std::shared_ptr<const starting_directory>(std::shared_ptr<void>(), &here.get()));
  return files.get();
}

}  // namespace shale::format
