#include "storage/files/file_space.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "shale/error.hpp"
#include "storage/files/file_descriptor.hpp"
#include "storage/files/file_size_signal.hpp"
#include "storage/files/file_system_kind.hpp"

namespace shale::detail {

namespace {

// Bounds the number of calls in a row that a signal interrupts. tmpfs gives back all space when a
// signal interrupts a call, so with a profiler's timer a long call could be repeated for ever.
constexpr int interruptions_max = 1000;

// Returns 0 or the error of fallocate(2). Space after the end is reserved in shorter pieces when it
// is interrupted; the size is raised in one piece or not at all.
int allocate(int descriptor, int mode, std::uint64_t from, std::uint64_t to) noexcept {
  constexpr std::uint64_t shortest_bytes = std::uint64_t{1} << 20;
  std::uint64_t piece = to - from;
  for (int interruptions = 0; from < to;) {
    const std::uint64_t bytes = std::min(piece, to - from);
    if (::fallocate(descriptor, mode, static_cast<off_t>(from), static_cast<off_t>(bytes)) == 0) {
      from += bytes;
      interruptions = 0;
    } else if (errno != EINTR || ++interruptions == interruptions_max) {
      return errno;
    } else if (mode == FALLOC_FL_KEEP_SIZE) {
      piece = std::max(bytes / 2, std::min(bytes, shortest_bytes));
    }
  }
  return 0;
}

bool is_beyond_limit(std::uint64_t bytes) noexcept {
  rlimit limit{};
  return bytes > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max()) ||
         (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
          bytes > limit.rlim_cur);
}

}  // namespace

bool is_surely_full(int descriptor, std::uint64_t from, std::uint64_t to) noexcept {
  struct stat file {};
  struct statvfs disk {};
  if (::fstat(descriptor, &file) != 0 || ::fstatvfs(descriptor, &disk) != 0) return false;
  if (disk.f_blocks == 0) return false;  // the file system does not count blocks
  // All blocks of the file may lie in the range, except that no more of them lie behind its end than
  // its length does not explain.
  const auto own = static_cast<std::uint64_t>(file.st_blocks) * 512;
  const auto size = static_cast<std::uint64_t>(file.st_size);
  const std::uint64_t inside = std::min(to, size) - std::min(from, size);
  const std::uint64_t behind = to - from - inside;
  const std::uint64_t wanted =
      inside - std::min(inside, own) + behind - std::min(behind, own - std::min(own, size));
  // Free blocks that are kept for root, or for one user or group, count as free for everybody,
  // because the system does not tell who may take them (on ext4: `tune2fs -u`, `-g`, or the right
  // CAP_SYS_RESOURCE).
  return wanted / disk.f_frsize > disk.f_bfree;
}

namespace {

// Writes zeros on file systems that cannot reserve space. It appends them, so that it never
// overwrites a byte that another process has added meanwhile.
int append_zeros(int descriptor, std::uint64_t to) noexcept {
  static constexpr std::size_t piece_bytes = std::size_t{64} << 10;
  static char zeros[piece_bytes];
  for (;;) {
    struct stat status {};
    if (::fstat(descriptor, &status) != 0) return errno;
    const auto present = static_cast<std::uint64_t>(status.st_size);
    if (present >= to) return 0;
    const iovec piece{zeros, std::min<std::uint64_t>(piece_bytes, to - present)};
    if (::pwritev2(descriptor, &piece, 1, 0, RWF_APPEND) < 0 && errno != EINTR) return errno;
  }
}

// Reserves the space first and changes the size last, with a call that can only increase it: others
// may grow the file at the same time, and nothing here truncates what they have added.
int reserve(int descriptor, std::uint64_t from, std::uint64_t to) noexcept {
  if (is_beyond_limit(to)) return EFBIG;
  if (is_surely_full(descriptor, from, to)) return ENOSPC;
  const no_file_size_signal guard;
  int failure = allocate(descriptor, FALLOC_FL_KEEP_SIZE, from, to);
  if (failure == 0 || failure == EOPNOTSUPP) failure = allocate(descriptor, 0, from, to);
  return failure == EOPNOTSUPP ? append_zeros(descriptor, to) : failure;
}

}  // namespace

void extend_file(int descriptor, std::uint64_t from, std::uint64_t to, std::string_view path) {
  if (to <= from) return;
  const int failure = reserve(descriptor, from, to);
  if (failure == 0) return;
  throw error::from_errno(
      code_for_opened_file(failure), "space for the file could not be reserved", failure,
      {fmt::format("file {}", path), fmt::format("wanted {} bytes, it has {}", to, from),
       failure == EFBIG ? "the size limit is that of the process (`ulimit -f`) "
                          "or of the file system"
                        : "free space on the device, or write elsewhere"});
}

namespace {

// Whether the file system writes changed bytes to other blocks than those that they have.
bool is_copied_on_write(int descriptor) noexcept {
  struct statfs status {};
  return ::fstatfs(descriptor, &status) != 0 ||
         copies_on_write(static_cast<std::uint64_t>(status.f_type));
}

}  // namespace

bool has_space(int descriptor, std::uint64_t from, std::uint64_t to) noexcept {
  constexpr std::uint32_t pieces_max = 32;
  // Other properties mean that the place is not known, or that writing there takes another place.
  constexpr std::uint32_t harmless =
      FIEMAP_EXTENT_LAST | FIEMAP_EXTENT_UNWRITTEN | FIEMAP_EXTENT_MERGED;
  if (is_beyond_limit(to) || is_copied_on_write(descriptor)) return false;
  alignas(fiemap) std::byte answer[sizeof(fiemap) + pieces_max * sizeof(fiemap_extent)] = {};
  auto* const map = reinterpret_cast<fiemap*>(answer);
  map->fm_start = from;
  map->fm_length = to - from;
  map->fm_extent_count = pieces_max;
  if (::ioctl(descriptor, FS_IOC_FIEMAP, map) != 0) return false;
  const auto* const pieces = reinterpret_cast<const fiemap_extent*>(answer + sizeof(fiemap));
  for (std::uint32_t i = 0; i < map->fm_mapped_extents; ++i) {
    if (pieces[i].fe_logical > from || (pieces[i].fe_flags & ~harmless) != 0) return false;
    from = pieces[i].fe_logical + pieces[i].fe_length;
  }
  return from >= to;
}

std::uint64_t file_bytes(int descriptor, std::string_view path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0)
    throw error::from_errno(errc::io, "the file's size could not be read", errno,
                            {fmt::format("file {}", path)});
  return static_cast<std::uint64_t>(status.st_size);
}

}  // namespace shale::detail
