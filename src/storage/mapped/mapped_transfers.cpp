// Moves bytes of mapped blocks by the file's descriptor, beside their pages.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

#include "storage/mapped/mapped_block.hpp"

namespace shale::detail {

namespace {

// Calls `move(done)`, which moves some bytes behind the first `done`, until all are moved. Returns
// false if it fails, or reaches the end of the file.
template <class Move>
bool move_all(std::size_t bytes, Move move) noexcept {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t moved = move(done);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return false;
    done += static_cast<std::size_t>(moved);
  }
  return true;
}

// Whether the bytes up to `end` may be written without growing the file and without SIGXFSZ. Stores
// into pages know no limit of file sizes.
bool is_inside(int descriptor, std::uint64_t end) noexcept {
  struct stat status {};
  rlimit largest{};
  return ::fstat(descriptor, &status) == 0 && end <= static_cast<std::uint64_t>(status.st_size) &&
         ::getrlimit(RLIMIT_FSIZE, &largest) == 0 && end <= largest.rlim_cur;
}

}  // namespace

// Private pages may differ from the file. O_DIRECT moves only whole blocks, and O_APPEND writes at
// the end of the file.
bool mapped_block::file_shows_the_bytes() const noexcept {
  if (belongs_to_parent() || failed() || source_.access == access::copy_on_write) return false;
  const int flags = ::fcntl(source_.descriptor, F_GETFL);
  return flags >= 0 && (flags & (O_DIRECT | O_APPEND)) == 0;
}

bool mapped_block::read_file(std::size_t offset, std::span<std::byte> into) const noexcept {
  if (!file_shows_the_bytes()) return false;
  bool all = true;
  std::byte* to = into.data();
  parts_.for_each_piece({offset, into.size()}, [&](const mapped_piece& piece) {
    all = all && move_all(piece.bytes, [&](std::size_t done) {
            return ::pread(source_.descriptor, to + done, piece.bytes - done,
                           static_cast<off_t>(piece.file_offset + done));
          });
    to += piece.bytes;
  });
  return all;
}

// Meanwhile nobody makes the pages read-only or detaches them: then the bytes may be summed, or
// belong to others.
bool mapped_block::write_file(std::size_t offset, std::span<const std::byte> from) noexcept {
  const std::lock_guard lock(changing_);
  if (access() != access::read_write || !file_shows_the_bytes()) return false;
  bool all = true;
  const std::byte* bytes = from.data();
  parts_.for_each_piece({offset, from.size()}, [&](const mapped_piece& piece) {
    all = all && is_inside(source_.descriptor, piece.file_offset + piece.bytes) &&
          move_all(piece.bytes, [&](std::size_t done) {
            return ::pwrite(source_.descriptor, bytes + done, piece.bytes - done,
                            static_cast<off_t>(piece.file_offset + done));
          });
    bytes += piece.bytes;
  });
  return all;
}

}  // namespace shale::detail
