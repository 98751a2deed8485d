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
#include <span>

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

namespace {

// The pieces of the device that hold bytes of a range of a file, also those that are only reserved.
class device_pieces {
 public:
  device_pieces(int descriptor, std::uint64_t from, std::uint64_t to) noexcept {
    auto* const map = reinterpret_cast<fiemap*>(answer_);
    map->fm_start = from;
    map->fm_length = to - from;
    map->fm_extent_count = pieces_max;
    if (::ioctl(descriptor, FS_IOC_FIEMAP, map) != 0) return;
    const auto* const first = reinterpret_cast<const fiemap_extent*>(answer_ + sizeof(fiemap));
    pieces_ = {first, map->fm_mapped_extents};
    are_all_ = pieces_.size() < pieces_max || (pieces_.back().fe_flags & FIEMAP_EXTENT_LAST) != 0;
  }

  /// In the order of the file; none if the file system does not tell.
  std::span<const fiemap_extent> pieces() const noexcept { return pieces_; }

  /// Whether the file system has told all pieces of the range.
  bool are_all() const noexcept { return are_all_; }

 private:
  static constexpr std::uint32_t pieces_max = 32;
  alignas(fiemap) std::byte answer_[sizeof(fiemap) + pieces_max * sizeof(fiemap_extent)] = {};
  std::span<const fiemap_extent> pieces_;
  bool are_all_ = false;
};

// The bytes of a range that have blocks already, or more than these if the file system does not
// tell: all blocks of the file may lie in the range, but behind the end of the file only those that
// its length does not need.
std::uint64_t most_bytes_there(int descriptor, const struct stat& file, std::uint64_t from,
                               std::uint64_t to) noexcept {
  const device_pieces known(descriptor, from, to);
  if (known.are_all()) {
    std::uint64_t there = 0;
    for (const fiemap_extent& piece : known.pieces())
      there += std::min<std::uint64_t>(piece.fe_logical + piece.fe_length, to) -
               std::max<std::uint64_t>(piece.fe_logical, from);
    return there;
  }
  const auto own = static_cast<std::uint64_t>(file.st_blocks) * 512;
  const auto size = static_cast<std::uint64_t>(file.st_size);
  const std::uint64_t inside = std::min(to, size) - std::min(from, size);
  return std::min(inside, own) + std::min(to - from - inside, own - std::min(own, size));
}

}  // namespace

bool is_surely_full(int descriptor, std::uint64_t from, std::uint64_t to) noexcept {
  struct stat file {};
  struct statvfs disk {};
  if (::fstat(descriptor, &file) != 0 || ::fstatvfs(descriptor, &disk) != 0) return false;
  if (disk.f_blocks == 0) return false;  // the file system does not count blocks
  const std::uint64_t wanted = to - from - most_bytes_there(descriptor, file, from, to);
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
  // Other properties mean that the place is not known, or that writing there takes another place.
  constexpr std::uint32_t harmless =
      FIEMAP_EXTENT_LAST | FIEMAP_EXTENT_UNWRITTEN | FIEMAP_EXTENT_MERGED;
  if (is_beyond_limit(to) || is_copied_on_write(descriptor)) return false;
  const device_pieces known(descriptor, from, to);
  for (const fiemap_extent& piece : known.pieces()) {
    if (piece.fe_logical > from || (piece.fe_flags & ~harmless) != 0) return false;
    from = piece.fe_logical + piece.fe_length;
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
