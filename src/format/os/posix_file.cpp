#include "format/os/posix_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <mutex>
#include <new>

#include "format/os/lock_holders.hpp"
#include "storage/files/file_descriptor.hpp"
#include "storage/files/file_size_signal.hpp"
#include "storage/files/file_space.hpp"
#include "storage/files/file_system_kind.hpp"
#include "storage/files/opening.hpp"
#include "storage/files/write_back_record.hpp"
#include "storage/system/file_facts.hpp"
#include "storage/system/not_offered.hpp"
#include "storage/system/pages.hpp"

namespace shale::format {

namespace {

constexpr std::size_t transfer_bytes_max = 1u << 30;  // Linux moves at most 2 GiB - 4 KiB
constexpr std::chrono::milliseconds poll_interval{10};

// Whether linkat(2) failed because the system or the file system does not support hard links.
bool lacks_links(int error_number) noexcept {
  return error_number == EPERM || error_number == EOPNOTSUPP || error_number == EMLINK ||
         error_number == ENOSYS;
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

}  // namespace

posix_file::~posix_file() {
  release_locks();
  if (word_page_ != nullptr) ::munmap(word_page_, shale::detail::system_page_bytes());
  if (!temporary_path_.empty()) ::unlinkat(directory_->descriptor, temporary_path_.c_str(), 0);
  if (descriptor_ >= 0) ::close(descriptor_);
}

os_result posix_file::pread(bytes_span into, std::uint64_t offset) noexcept {
  return answer(::pread(descriptor_, into.data(), std::min(into.size(), transfer_bytes_max),
                        static_cast<off_t>(offset)));
}

os_result posix_file::pwrite(bytes_view bytes, std::uint64_t offset) noexcept {
  const shale::detail::no_file_size_signal guard;
  return answer(::pwrite(descriptor_, bytes.data(), std::min(bytes.size(), transfer_bytes_max),
                         static_cast<off_t>(offset)));
}

os_result posix_file::allocate(std::uint64_t offset, std::uint64_t bytes) noexcept {
  // A reservation that fails takes all free space first and gives it back afterwards. Other
  // writers would find the disk full in between, so a hopeless reservation is not tried.
  if (shale::detail::is_surely_full(descriptor_, offset, offset + bytes)) return -ENOSPC;
  const shale::detail::no_file_size_signal guard;
  const int failed =
      ::posix_fallocate(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  return -failed;
}

bool posix_file::has_space_for(std::uint64_t offset, std::uint64_t bytes) noexcept {
  return shale::detail::has_space(descriptor_, offset, offset + bytes);
}

os_result posix_file::punch(std::uint64_t offset, std::uint64_t bytes) noexcept {
  const os_result result =
      answer(::fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                         static_cast<off_t>(offset), static_cast<off_t>(bytes)));
  if (result != -EOPNOTSUPP) return result;
  return write_zeros(offset, bytes);
}

os_result posix_file::sync_data() noexcept { return answer(::fdatasync(descriptor_)); }

void posix_file::discard_old_errors() noexcept {
  if (::sync_file_range(descriptor_, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE) != 0 &&
      shale::detail::is_not_offered(errno))
    (void)::fdatasync(descriptor_);
}

bool posix_file::drop_cached(std::uint64_t offset, std::uint64_t bytes) noexcept {
  // The kernel keeps a large page of the cache that lies only partly in the range.
  constexpr std::uint64_t large_page = std::uint64_t{2} << 20;
  drop(offset, bytes);
  if (cached_bytes(offset, bytes) == 0) return true;
  const std::uint64_t first = offset / large_page * large_page;
  drop(first, shale::detail::align_up(offset + bytes, large_page) - first);
  return cached_bytes(offset, bytes).value_or(0) == 0;
}

os_result posix_file::truncate(std::uint64_t bytes) noexcept {
  const shale::detail::no_file_size_signal guard;
  return answer(::ftruncate(descriptor_, static_cast<off_t>(bytes)));
}

os_result posix_file::size() noexcept {
  shale::detail::file_facts facts;
  const int failed = shale::detail::facts_of(descriptor_, facts);
  return failed != 0 ? -failed : static_cast<os_result>(facts.bytes);
}

os_result posix_file::identify(file_identity& identity) noexcept {
  shale::detail::file_facts facts;
  const int failed = shale::detail::facts_of(descriptor_, facts);
  if (failed == 0) identity = identity_from(facts);
  return -failed;
}

os_result posix_file::try_lock(std::uint64_t byte, lock_mode mode) noexcept {
  struct flock request = lock_request(mode == lock_mode::shared ? F_RDLCK : F_WRLCK, byte, 1);
  const os_result result = answer(::fcntl(descriptor_, F_OFD_SETLK, &request));
  return result == -EACCES ? -EAGAIN : result;  // POSIX allows either for "taken"
}

os_result posix_file::find_lock(lock_range within, found_lock& found) noexcept {
  struct flock request = lock_request(F_WRLCK, within.first, within.last - within.first + 1);
  const os_result result = answer(::fcntl(descriptor_, F_OFD_GETLK, &request));
  if (result < 0) return result;
  if (request.l_type == F_UNLCK) return 0;
  const auto first = static_cast<std::uint64_t>(request.l_start);
  constexpr auto end = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
  found.range = {first,
                 request.l_len == 0 ? end : first + static_cast<std::uint64_t>(request.l_len) - 1};
  found.mode = request.l_type == F_RDLCK ? lock_mode::shared : lock_mode::exclusive;
  found.process = std::max<std::int64_t>(request.l_pid, 0);
  return 1;
}

std::string posix_file::holders_of(const found_lock& lock) const {
  return lock_holders(descriptor_, lock);
}

os_result posix_file::open_again(std::unique_ptr<open_file>& again) noexcept {
  char self[64];
  std::snprintf(self, sizeof self, "/proc/self/fd/%d", descriptor_);
  const int descriptor = shale::detail::open_at(AT_FDCWD, self, O_RDONLY | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0) return -errno;
  again.reset(new (std::nothrow) posix_file(descriptor, {}, nullptr));
  if (again != nullptr) return 0;
  ::close(descriptor);
  return -ENOMEM;
}

std::string posix_file::present_name() const {
  char target[4096];
  const ssize_t length =
      ::readlink(fmt::format("/proc/self/fd/{}", descriptor_).c_str(), target, sizeof target);
  return length > 0 ? std::string(target, static_cast<std::size_t>(length)) : std::string();
}

bool posix_file::is_remote() const noexcept {
  return shale::detail::file_system_of(descriptor_) == shale::detail::file_system_kind::network;
}

void posix_file::wait_word(std::uint64_t offset, std::uint32_t seen,
                           std::chrono::milliseconds timeout) noexcept {
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

void posix_file::wake_word(std::uint64_t offset) noexcept {
  if (void* const word = map_word(offset))
    (void)::syscall(SYS_futex, word, FUTEX_WAKE, 0x7fffffff, nullptr, nullptr, 0);
}

// The handlers of fork close the descriptor in a child. A child that was made without them
// (clone) is recognised by its process number.
bool posix_file::left_behind_by_fork() const noexcept {
  return descriptor_ < 0 || (kept_ && opener_ != ::getpid());
}

bool posix_file::keep_from_children(std::int64_t before) noexcept {
  return kept_.emplace(descriptor_).start(before);
}

os_result posix_file::give_name(const starting_directory& parent,
                                const std::string& path) noexcept {
  if (!temporary_path_.empty()) return give_up_temporary_name(parent, path);
  char self[64];
  std::snprintf(self, sizeof self, "/proc/self/fd/%d", descriptor_);
  return answer(::linkat(AT_FDCWD, self, parent.descriptor, path.c_str(), AT_SYMLINK_FOLLOW));
}

// Gives the file its name by linkat(2). File systems without hard links, such as exFAT, need
// renameat2(2). Neither call replaces a file that has the name already.
os_result posix_file::give_up_temporary_name(const starting_directory& parent,
                                             const std::string& path) noexcept {
  const int from = directory_->descriptor;
  const char* const temporary = temporary_path_.c_str();
  const int refused =
      ::linkat(from, temporary, parent.descriptor, path.c_str(), 0) == 0 ? 0 : errno;
  if (refused == 0) {
    ::unlinkat(from, temporary, 0);
  } else if (!lacks_links(refused)) {
    return -refused;
  } else if (::renameat2(from, temporary, parent.descriptor, path.c_str(), RENAME_NOREPLACE) != 0) {
    // EINVAL and ENOSYS: the flag or the call is not supported here. Then the error of linkat(2)
    // is the reason.
    return errno == EINVAL || errno == ENOSYS ? -refused : -errno;
  }
  temporary_path_.clear();
  return 0;
}

void posix_file::drop(std::uint64_t offset, std::uint64_t bytes) noexcept {
  (void)::posix_fadvise(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(bytes),
                        POSIX_FADV_DONTNEED);
}

// How many bytes of the range are in the page cache; nothing if the system does not tell. Kernels
// before 6.5 have no such call. They have no large pages of ext4 either, so a range that was dropped
// is not there.
std::optional<std::uint64_t> posix_file::cached_bytes(std::uint64_t offset,
                                                      std::uint64_t bytes) const noexcept {
  struct {
    std::uint64_t offset, bytes;
  } const range{offset, bytes};
  struct {
    std::uint64_t cached, dirty, written_back, evicted, recently_evicted;
  } found{};
  constexpr long cachestat = 451;  // of all processors; not yet in the headers of the C library
  if (::syscall(cachestat, descriptor_, &range, &found, 0U) == 0)
    return found.cached * shale::detail::system_page_bytes();
  return errno == ENOSYS ? std::optional<std::uint64_t>(0) : std::nullopt;
}

os_result posix_file::write_zeros(std::uint64_t offset, std::uint64_t bytes) noexcept {
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
void* posix_file::map_word(std::uint64_t offset) noexcept {
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
void posix_file::release_locks() noexcept {
  if (!kept_ || left_behind_by_fork()) return;
  struct flock all = lock_request(F_UNLCK, 0, 0);
  ::fcntl(descriptor_, F_OFD_SETLK, &all);
  kept_.reset();  // the number will be another file's soon
}

}  // namespace shale::format
