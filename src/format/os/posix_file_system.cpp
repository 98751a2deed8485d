// Implements file_system.hpp with Linux system calls.

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

#include "core/never_destroyed.hpp"
#include "format/os/descriptors_kept_from_children.hpp"
#include "format/os/file_system.hpp"
#include "format/os/lock_holders.hpp"
#include "storage/files/file_descriptor.hpp"
#include "storage/files/file_size_signal.hpp"
#include "storage/files/file_space.hpp"
#include "storage/files/file_system_kind.hpp"
#include "storage/files/folder_sync.hpp"
#include "storage/files/opening.hpp"
#include "storage/files/partial_path.hpp"
#include "storage/files/write_back_record.hpp"
#include "storage/system/fork_safe_mutex.hpp"
#include "storage/system/pages.hpp"

namespace shale::format {
namespace {

os_result answer(std::int64_t result) noexcept { return result < 0 ? -errno : result; }

file_identity identity_from(const struct stat& status) noexcept {
  return {static_cast<std::uint64_t>(status.st_dev), static_cast<std::uint64_t>(status.st_ino)};
}

bool is_proc(int directory) noexcept {
  struct statfs status {};
  return ::fstatfs(directory, &status) == 0 && status.f_type == PROC_SUPER_MAGIC;
}

// Whether linkat(2) failed because the system or the file system does not support hard links.
bool lacks_links(int error_number) noexcept {
  return error_number == EPERM || error_number == EOPNOTSUPP || error_number == EMLINK ||
         error_number == ENOSYS;
}

// The directory that relative names begin in: the working directory, or one that is held open.
struct directory {
  int descriptor = AT_FDCWD;

  directory() = default;
  ~directory() {
    if (descriptor >= 0) ::close(descriptor);
  }
  directory(const directory&) = delete;
  directory& operator=(const directory&) = delete;
};

struct posix_directory final : open_directory {
  directory held;

  os_result sync_names() noexcept override { return -shale::detail::sync_folder(held.descriptor); }
};

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
  /// A file that has a temporary name in `parent`, or none.
  posix_file(int descriptor, std::string temporary_path,
             std::shared_ptr<const directory> parent) noexcept
      : descriptor_(descriptor),
        temporary_path_(std::move(temporary_path)),
        directory_(std::move(parent)) {}

  ~posix_file() override {
    release_locks();
    if (word_page_ != nullptr) ::munmap(word_page_, shale::detail::system_page_bytes());
    if (!temporary_path_.empty()) ::unlinkat(directory_->descriptor, temporary_path_.c_str(), 0);
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  posix_file(const posix_file&) = delete;
  posix_file& operator=(const posix_file&) = delete;

  os_result pread(bytes_span into, std::uint64_t offset) noexcept override {
    return answer(::pread(descriptor_, into.data(), std::min(into.size(), transfer_bytes_max),
                          static_cast<off_t>(offset)));
  }

  os_result pwrite(bytes_view bytes, std::uint64_t offset) noexcept override {
    const shale::detail::no_file_size_signal guard;
    return answer(::pwrite(descriptor_, bytes.data(), std::min(bytes.size(), transfer_bytes_max),
                           static_cast<off_t>(offset)));
  }

  os_result allocate(std::uint64_t offset, std::uint64_t bytes) noexcept override {
    // A reservation that fails takes all free space first and gives it back afterwards. Other
    // writers would find the disk full in between, so a hopeless reservation is not tried.
    if (shale::detail::is_surely_full(descriptor_, offset, offset + bytes)) return -ENOSPC;
    const shale::detail::no_file_size_signal guard;
    const int failed =
        ::posix_fallocate(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(bytes));
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

  void discard_old_errors() noexcept override {
    if (::sync_file_range(descriptor_, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE) != 0 &&
        shale::detail::is_not_offered(errno))
      (void)::fdatasync(descriptor_);
  }

  void drop_cached(std::uint64_t offset, std::uint64_t bytes) noexcept override {
    // The kernel keeps a large page of the cache that lies only partly in the range.
    constexpr std::uint64_t large_page = std::uint64_t{2} << 20;
    drop(offset, bytes);
    if (!may_be_cached(offset, bytes)) return;
    const std::uint64_t first = offset / large_page * large_page;
    drop(first, shale::detail::align_up(offset + bytes, large_page) - first);
  }

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

  os_result find_lock(lock_range within, found_lock& found) noexcept override {
    struct flock request = lock_request(F_WRLCK, within.first, within.last - within.first + 1);
    const os_result result = answer(::fcntl(descriptor_, F_OFD_GETLK, &request));
    if (result < 0) return result;
    if (request.l_type == F_UNLCK) return 0;
    const auto first = static_cast<std::uint64_t>(request.l_start);
    constexpr auto end = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
    found.range = {
        first, request.l_len == 0 ? end : first + static_cast<std::uint64_t>(request.l_len) - 1};
    found.mode = request.l_type == F_RDLCK ? lock_mode::shared : lock_mode::exclusive;
    found.process = std::max<std::int64_t>(request.l_pid, 0);
    return 1;
  }

  std::string holders_of(const found_lock& lock) const override {
    return lock_holders(descriptor_, lock);
  }

  os_result open_again(std::unique_ptr<open_file>& again) noexcept override {
    char self[64];
    std::snprintf(self, sizeof self, "/proc/self/fd/%d", descriptor_);
    const int descriptor = shale::detail::open_at(AT_FDCWD, self, O_RDONLY | O_NOCTTY | O_NONBLOCK);
    if (descriptor < 0) return -errno;
    again.reset(new (std::nothrow) posix_file(descriptor, {}, nullptr));
    if (again != nullptr) return 0;
    ::close(descriptor);
    return -ENOMEM;
  }

  std::string present_name() const override {
    char target[4096];
    const ssize_t length =
        ::readlink(fmt::format("/proc/self/fd/{}", descriptor_).c_str(), target, sizeof target);
    return length > 0 ? std::string(target, static_cast<std::size_t>(length)) : std::string();
  }

  bool is_remote() const noexcept override {
    return shale::detail::file_system_of(descriptor_) == shale::detail::file_system_kind::network;
  }

  void wait_word(std::uint64_t offset, std::uint32_t seen,
                 std::chrono::milliseconds timeout) noexcept override {
    timespec time = to_timespec(timeout);
    void* const word = map_word(offset);
    // The kernel reads the word itself. If the page is gone, the call fails, where a load by this
    // process would raise SIGBUS. The caller looks at the superblocks again in any case.
    const bool waited =
        word != nullptr && (::syscall(SYS_futex, word, FUTEX_WAIT, seen, &time, nullptr, 0) == 0 ||
                            errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT);
    if (!waited) {
      timespec step = to_timespec(std::min(timeout, poll_interval));
      ::nanosleep(&step, nullptr);
    }
  }

  void wake_word(std::uint64_t offset) noexcept override {
    if (void* const word = map_word(offset))
      (void)::syscall(SYS_futex, word, FUTEX_WAKE, 0x7fffffff, nullptr, nullptr, 0);
  }

  int descriptor() const noexcept override { return descriptor_; }

  // The handlers of fork close the descriptor in a child. A child that was made without them
  // (clone) is recognised by its process number.
  bool left_behind_by_fork() const noexcept override {
    return descriptor_ < 0 || (kept_ && opener_ != ::getpid());
  }

  /// False if the process has forked since `forks_begun` returned `before`: the child may have a
  /// copy.
  bool keep_from_children(std::int64_t before) noexcept {
    return kept_.emplace(descriptor_).start(before);
  }

  os_result give_name(const directory& parent, const std::string& path) noexcept {
    if (!temporary_path_.empty()) return give_up_temporary_name(parent, path);
    char self[64];
    std::snprintf(self, sizeof self, "/proc/self/fd/%d", descriptor_);
    return answer(::linkat(AT_FDCWD, self, parent.descriptor, path.c_str(), AT_SYMLINK_FOLLOW));
  }

 private:
  static constexpr std::size_t transfer_bytes_max = 1u << 30;  // Linux moves at most 2 GiB - 4 KiB
  static constexpr std::chrono::milliseconds poll_interval{10};

  // Gives the file its name by linkat(2). File systems without hard links, such as exFAT, need
  // renameat2(2). Neither call replaces a file that has the name already.
  os_result give_up_temporary_name(const directory& parent, const std::string& path) noexcept {
    const int from = directory_->descriptor;
    const char* const temporary = temporary_path_.c_str();
    const int refused =
        ::linkat(from, temporary, parent.descriptor, path.c_str(), 0) == 0 ? 0 : errno;
    if (refused == 0) {
      ::unlinkat(from, temporary, 0);
    } else if (!lacks_links(refused)) {
      return -refused;
    } else if (::renameat2(from, temporary, parent.descriptor, path.c_str(), RENAME_NOREPLACE) !=
               0) {
      // EINVAL and ENOSYS: the flag or the call is not supported here. Then the error of linkat(2)
      // is the reason.
      return errno == EINVAL || errno == ENOSYS ? -refused : -errno;
    }
    temporary_path_.clear();
    return 0;
  }

  void drop(std::uint64_t offset, std::uint64_t bytes) noexcept {
    (void)::posix_fadvise(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(bytes),
                          POSIX_FADV_DONTNEED);
  }

  // Whether a page of the range is in the page cache. Kernels before 6.5 do not answer. They have
  // no large pages of ext4, so a range that was dropped is not there.
  bool may_be_cached(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    struct {
      std::uint64_t offset, bytes;
    } const range{offset, bytes};
    struct {
      std::uint64_t cached, dirty, written_back, evicted, recently_evicted;
    } found{};
    constexpr long cachestat = 451;  // of all processors; not yet in the headers of the C library
    if (::syscall(cachestat, descriptor_, &range, &found, 0U) == 0) return found.cached > 0;
    return errno != ENOSYS;
  }

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

  // Maps one page of the system over the file on first use. Only the kernel reads it; this process
  // never does.
  void* map_word(std::uint64_t offset) noexcept {
    const std::size_t bytes = shale::detail::system_page_bytes();
    const std::uint64_t page = shale::detail::align_down(offset, bytes);
    const std::lock_guard lock(mapping_word_);
    if (!word_mapped_) {
      word_mapped_ = true;
      void* const mapped =
          ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor_, static_cast<off_t>(page));
      if (mapped != MAP_FAILED) {
        word_page_ = mapped;
        word_page_offset_ = page;
      }
    }
    if (word_page_ == nullptr || page != word_page_offset_) return nullptr;
    return static_cast<std::byte*>(word_page_) + (offset - page);
  }

  // Locks end when the last copy of the description is closed. A child that was made without the
  // handlers of fork (vfork, clone) has a copy, so the locks are released explicitly, but never by
  // that child: it would release its parent's.
  void release_locks() noexcept {
    if (!kept_ || left_behind_by_fork()) return;
    struct flock all = lock_request(F_UNLCK, 0, 0);
    ::fcntl(descriptor_, F_OFD_SETLK, &all);
    kept_.reset();  // the number will be another file's soon
  }

  int descriptor_;
  const pid_t opener_ = ::getpid();
  std::optional<kept_from_children> kept_;
  std::string temporary_path_;
  std::shared_ptr<const directory> directory_;  // of the temporary name
  shale::detail::fork_safe_mutex mapping_word_;
  bool word_mapped_ = false;  // or could not be
  void* word_page_ = nullptr;
  std::uint64_t word_page_offset_ = 0;
};

class posix_file_system final : public file_system {
 public:
  /// Relative names begin in `parent`.
  explicit posix_file_system(std::shared_ptr<const directory> parent) noexcept
      : directory_(std::move(parent)) {}

  os_result bind(const std::string& path, std::shared_ptr<file_system>& bound,
                 std::string& name) noexcept override {
    return unless_out_of_memory([&]() -> os_result {
      std::shared_ptr<const directory> parent = directory_;
      std::string rest = path;
      for (int followed = 0; followed <= shale::detail::links_followed_max; ++followed) {
        if (rest.empty()) return -ENOENT;
        std::string last = rest.substr(rest.find_last_of('/') + 1);
        if (last.empty()) last = ".";  // the path names a directory: opening it fails later
        auto held = std::make_shared<directory>();
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
    struct stat status {};
    if (::fstatat(folder(), path.c_str(), &status, 0) < 0) return -errno;
    identity = identity_from(status);
    return 0;
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

  std::shared_ptr<const directory> directory_;
};

}  // namespace

file_system& posix_files() noexcept {
  // Both objects are never destroyed, because static objects may hold containers. The shared_ptr
  // owns nothing: the working directory needs no closing.
  static shale::detail::never_destroyed<directory> here;
  static shale::detail::never_destroyed<posix_file_system> files(
      std::shared_ptr<const directory>(std::shared_ptr<void>(), &here.get()));
  return files.get();
}

}  // namespace shale::format
