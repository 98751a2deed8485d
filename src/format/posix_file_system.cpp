// The seam over Linux system calls.

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

#include "format/file_system.hpp"
#include "format/forked_children.hpp"
#include "storage/file_size_signal.hpp"

namespace shale::format {
namespace {

os_result answer(std::int64_t result) noexcept { return result < 0 ? -errno : result; }

file_identity identity_from(const struct stat& status) noexcept {
  return {static_cast<std::uint64_t>(status.st_dev), static_cast<std::uint64_t>(status.st_ino)};
}

std::string directory_of(const std::string& path) {
  const auto slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

struct flock lock_request(short type, std::uint64_t first, std::uint64_t bytes) noexcept {
  struct flock request {};
  request.l_type = type;
  request.l_whence = SEEK_SET;
  request.l_start = static_cast<off_t>(first);
  request.l_len = static_cast<off_t>(bytes);
  request.l_pid = 0;  // required of open-file-description locks
  return request;
}

timespec to_timespec(std::chrono::milliseconds duration) noexcept {
  const auto count = std::max<std::int64_t>(duration.count(), 0);
  timespec time{};
  time.tv_sec = static_cast<time_t>(count / 1000);
  time.tv_nsec = static_cast<long>(count % 1000 * 1'000'000);
  return time;
}

class posix_file final : public open_file {
 public:
  posix_file(int descriptor, std::string temporary_path) noexcept
      : descriptor_(descriptor), temporary_path_(std::move(temporary_path)) {}

  ~posix_file() override {
    release_locks();
    if (word_page_ != nullptr) ::munmap(word_page_, word_page_bytes);
    if (!temporary_path_.empty()) ::unlink(temporary_path_.c_str());
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  posix_file(const posix_file&) = delete;
  posix_file& operator=(const posix_file&) = delete;

  os_result pread(bytes_span into, std::uint64_t offset) noexcept override {
    return answer(::pread(descriptor_, into.data(), std::min(into.size(), transfer_bytes_max),
                          static_cast<off_t>(offset)));
  }

  os_result pwrite(bytes_view from, std::uint64_t offset) noexcept override {
    const shale::detail::no_file_size_signal guard;
    return answer(::pwrite(descriptor_, from.data(), std::min(from.size(), transfer_bytes_max),
                           static_cast<off_t>(offset)));
  }

  os_result allocate(std::uint64_t offset, std::uint64_t bytes) noexcept override {
    const shale::detail::no_file_size_signal guard;
    const int failed =
        ::posix_fallocate(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(bytes));
    // What a failed call appended stays: another thread may have written chunks behind it meanwhile.
    // The end of the transaction gives the tail back.
    return -failed;
  }

  os_result punch(std::uint64_t offset, std::uint64_t bytes) noexcept override {
    const os_result result =
        answer(::fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                           static_cast<off_t>(offset), static_cast<off_t>(bytes)));
    if (result != -EOPNOTSUPP) return result;
    return write_zeros(offset, bytes);
  }

  os_result sync_data() noexcept override { return answer(::fdatasync(descriptor_)); }

  os_result truncate(std::uint64_t bytes) noexcept override {
    const shale::detail::no_file_size_signal guard;
    return answer(::ftruncate(descriptor_, static_cast<off_t>(bytes)));
  }

  os_result size() noexcept override {
    struct stat status {};
    return ::fstat(descriptor_, &status) < 0 ? -errno : static_cast<os_result>(status.st_size);
  }

  os_result identify(file_identity& identity) noexcept override {
    struct stat status {};
    if (::fstat(descriptor_, &status) < 0) return -errno;
    identity = identity_from(status);
    return 0;
  }

  os_result try_lock(std::uint64_t byte, lock_mode mode) noexcept override {
    struct flock request = lock_request(mode == lock_mode::shared ? F_RDLCK : F_WRLCK, byte, 1);
    const os_result result = answer(::fcntl(descriptor_, F_OFD_SETLK, &request));
    return result == -EACCES ? -EAGAIN : result;  // POSIX allows either for "taken"
  }

  os_result find_lock(lock_range within, lock_range& found) noexcept override {
    struct flock request = lock_request(F_WRLCK, within.first, within.last - within.first + 1);
    const os_result result = answer(::fcntl(descriptor_, F_OFD_GETLK, &request));
    if (result < 0) return result;
    if (request.l_type == F_UNLCK) return 0;
    const auto first = static_cast<std::uint64_t>(request.l_start);
    const std::uint64_t last =
        request.l_len == 0 ? within.last : first + static_cast<std::uint64_t>(request.l_len) - 1;
    found = {std::max(first, within.first), std::min(last, within.last)};
    return 1;
  }

  void wait_word(std::uint64_t offset, std::uint32_t seen,
                 std::chrono::milliseconds patience) noexcept override {
    timespec time = to_timespec(patience);
    void* const word = map_word(offset);
    // The kernel reads the word itself: should the page be gone, the call fails where a load of
    // ours would raise SIGBUS. Whoever calls looks at the superblocks again in any case.
    const bool waited =
        word != nullptr && (::syscall(SYS_futex, word, FUTEX_WAIT, seen, &time, nullptr, 0) == 0 ||
                            errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT);
    if (!waited) {
      timespec step = to_timespec(std::min(patience, poll_interval));
      ::nanosleep(&step, nullptr);
    }
  }

  void wake_word(std::uint64_t offset) noexcept override {
    if (void* const word = map_word(offset))
      (void)::syscall(SYS_futex, word, FUTEX_WAKE, 0x7fffffff, nullptr, nullptr, 0);
  }

  int descriptor() const noexcept override { return descriptor_; }

  bool left_behind_by_fork() const noexcept override { return descriptor_ < 0; }

  /// False if a child may have a copy already: it forked since `forks_begun` answered `before`.
  bool keep_from_children(std::int64_t before) noexcept {
    return kept_.emplace(descriptor_).start(before);
  }

  os_result give_name(const std::string& path) noexcept {
    if (!temporary_path_.empty()) {
      if (::link(temporary_path_.c_str(), path.c_str()) < 0) return -errno;
      ::unlink(temporary_path_.c_str());
      temporary_path_.clear();
      return 0;
    }
    char self[64];
    std::snprintf(self, sizeof self, "/proc/self/fd/%d", descriptor_);
    return answer(::linkat(AT_FDCWD, self, AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW));
  }

 private:
  static constexpr std::size_t transfer_bytes_max = 1u << 30;  // Linux moves at most 2 GiB - 4 KiB
  static constexpr std::size_t word_page_bytes = 4096;
  static constexpr std::chrono::milliseconds poll_interval{10};

  os_result write_zeros(std::uint64_t offset, std::uint64_t bytes) noexcept {
    const os_result end = size();
    if (end < 0) return end;
    static constexpr std::size_t block_bytes = 64u << 10;
    static const std::byte zeros[block_bytes] = {};
    const std::uint64_t stop = std::min(offset + bytes, static_cast<std::uint64_t>(end));
    while (offset < stop) {
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(block_bytes, stop - offset));
      const os_result written = pwrite({zeros, n}, offset);
      if (written < 0 && written != -EINTR) return written;
      if (written > 0) offset += static_cast<std::uint64_t>(written);
    }
    return 0;
  }

  // One page of the file, mapped on first use; only ever handed to the kernel, never touched here.
  void* map_word(std::uint64_t offset) noexcept {
    std::call_once(word_mapped_, [&] {
      const std::uint64_t page = offset / word_page_bytes * word_page_bytes;
      void* const at = ::mmap(nullptr, word_page_bytes, PROT_READ, MAP_SHARED, descriptor_,
                              static_cast<off_t>(page));
      if (at == MAP_FAILED) return;
      word_page_ = at;
      word_page_offset_ = page;
    });
    if (word_page_ == nullptr || offset / word_page_bytes * word_page_bytes != word_page_offset_)
      return nullptr;
    return static_cast<std::byte*>(word_page_) + offset % word_page_bytes;
  }

  // A child that was made without the handlers of fork (vfork, clone) has a copy, and closing ours
  // would release nothing.
  void release_locks() noexcept {
    if (!kept_ || descriptor_ < 0) return;
    struct flock all = lock_request(F_UNLCK, 0, 0);
    ::fcntl(descriptor_, F_OFD_SETLK, &all);
    kept_.reset();  // the number will be another file's soon
  }

  int descriptor_;
  std::optional<kept_from_children> kept_;
  std::string temporary_path_;
  std::once_flag word_mapped_;
  void* word_page_ = nullptr;
  std::uint64_t word_page_offset_ = 0;
};

class posix_file_system final : public file_system {
 public:
  os_result open(const std::string& path, open_access access,
                 std::unique_ptr<open_file>& opened) noexcept override {
    // O_NONBLOCK: opening a pipe must not wait for its other end; regular files do not care.
    const int flags =
        (access == open_access::write ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    const int descriptor = ::open(path.c_str(), flags);
    if (descriptor < 0) return -errno;
    struct stat status {};
    os_result result = ::fstat(descriptor, &status) < 0 ? -errno : 0;
    if (result == 0 && !S_ISREG(status.st_mode))
      result = S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL;
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
    return static_cast<posix_file&>(file).give_name(path);
  }

  os_result rename(const std::string& from, const std::string& to) noexcept override {
    return answer(::rename(from.c_str(), to.c_str()));
  }

  os_result remove(const std::string& path) noexcept override {
    return answer(::unlink(path.c_str()));
  }

  os_result sync_directory_of(const std::string& path) noexcept override {
    return unless_out_of_memory([&]() -> os_result {
      const std::string directory = directory_of(path);
      int descriptor;  // opening may be repeated, but not the sync
      do descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      while (descriptor < 0 && errno == EINTR);
      if (descriptor < 0) return -errno;
      const os_result result = answer(::fsync(descriptor));
      ::close(descriptor);
      return result;
    });
  }

  os_result identify(const std::string& path, file_identity& identity) noexcept override {
    struct stat status {};
    if (::stat(path.c_str(), &status) < 0) return -errno;
    identity = identity_from(status);
    return 0;
  }

  void pause(std::chrono::milliseconds duration) noexcept override {
    timespec time = to_timespec(duration);
    ::nanosleep(&time, nullptr);
  }

 private:
  // Names are made of other names here, which takes memory.
  template <class Body>
  static os_result unless_out_of_memory(Body&& body) noexcept {
    try {
      return body();
    } catch (const std::bad_alloc&) {
      return -ENOMEM;
    }
  }

  static os_result try_create_unnamed(const std::string& path, unsigned mode,
                                      std::unique_ptr<open_file>& created) {
    const std::string directory = directory_of(path);
    // A nameless file gets its name through /proc: without it, only a temporary name is left.
    if (::access("/proc/self/fd", X_OK) == 0) {
      const int descriptor =
          ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, static_cast<mode_t>(mode));
      if (descriptor >= 0) return adopt(descriptor, {}, 0, created);
      if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) return -errno;
    }
    for (int attempt = 0; attempt < 16; ++attempt) {
      std::uint64_t noise = 0;
      if (::getrandom(&noise, sizeof noise, 0) != sizeof noise) return -EIO;
      std::string temporary = fmt::format("{}.{:016x}.tmp", path, noise);
      const int descriptor = ::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
                                    static_cast<mode_t>(mode));
      if (descriptor >= 0) return adopt(descriptor, std::move(temporary), 0, created);
      if (errno != EEXIST) return -errno;
    }
    return -EEXIST;
  }

  // Takes the descriptor and, if it has one, its temporary name; gives both up on failure.
  static os_result adopt(int descriptor, std::string temporary, os_result result,
                         std::unique_ptr<open_file>& into) noexcept {
    if (result >= 0) {
      // Without memory nothing is moved from the name.
      into.reset(new (std::nothrow) posix_file(descriptor, std::move(temporary)));
      if (into != nullptr) return 0;
      result = -ENOMEM;
    }
    // NOLINTNEXTLINE(bugprone-use-after-move)
    if (!temporary.empty()) ::unlink(temporary.c_str());
    ::close(descriptor);
    return result;
  }
};

}  // namespace

file_system& posix_files() noexcept {
  static posix_file_system files;
  return files;
}

}  // namespace shale::format
