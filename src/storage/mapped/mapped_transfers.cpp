// Moves bytes of mapped blocks by the file's descriptor, beside their pages.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <optional>

#include "storage/mapped/mapped_block.hpp"
#include "storage/system/file_facts.hpp"

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

// Whether writing up to this byte raises SIGXFSZ. Stores into pages know no limit of file sizes.
bool is_behind_the_limit(std::uint64_t end) noexcept {
  rlimit largest{};
  return ::getrlimit(RLIMIT_FSIZE, &largest) != 0 || end > largest.rlim_cur;
}

}  // namespace

// Private pages may differ from the file. O_DIRECT moves only whole blocks, and O_APPEND writes at
// the end of the file.
bool mapped_block::file_shows_the_bytes() const noexcept {
  if (belongs_to_parent() || failed() || source_.access == access::copy_on_write) return false;
  const int flags = ::fcntl(source_.descriptor, F_GETFL);
  return flags >= 0 && (flags & (O_DIRECT | O_APPEND)) == 0;
}

// A program may have closed the descriptor behind our back, and opened another file that has its
// number now.
std::optional<std::uint64_t> mapped_block::size_of_own_file() const noexcept {
  file_facts facts;
  if (facts_of(source_.descriptor, facts) != 0) return std::nullopt;
  if (!(backing_file{facts.device, facts.inode} == backing_)) return std::nullopt;
  return facts.bytes;
}

bool mapped_block::read_file(std::size_t offset, std::span<std::byte> into) const noexcept {
  if (!file_shows_the_bytes() || !size_of_own_file()) return false;
  bool all = true;
  std::byte* to = into.data();
  parts_.for_each_piece({offset, into.size()}, [&](const mapped_piece& piece) {
    all = all && move_all(piece.bytes, [&](std::size_t done) {
            return ::pread(source_.descriptor, to + done, piece.bytes - done,
                           static_cast<off_t>(piece.file_offset + done));
          });
    to += piece.bytes;
  });
  // Another thread may have put another file under the number meanwhile.
  return all && size_of_own_file().has_value();
}

// A write may lengthen a file that another process truncates meanwhile. Then the file is shorter
// afterwards than before, because its last bytes are left to the pages; and the bytes count as lost.
bool mapped_block::write_piece(const mapped_piece& piece, const std::byte* from) {
  const std::uint64_t end = piece.file_offset + piece.bytes;
  const auto before = size_of_own_file();
  if (!before || end >= *before || is_behind_the_limit(end)) return false;
  if (!move_all(piece.bytes, [&](std::size_t done) {
        return ::pwrite(source_.descriptor, from + done, piece.bytes - done,
                        static_cast<off_t>(piece.file_offset + done));
      })) {
    if (errno == ENOSPC || errno == EDQUOT) throw_without_space(piece.file_offset, errno);
    return false;
  }
  if (size_of_own_file() < before) mark_.set(piece.file_offset);
  return true;
}

// Meanwhile nobody makes the pages read-only or detaches them: then the bytes may be summed, or
// belong to others.
bool mapped_block::write_file(std::size_t offset, std::span<const std::byte> from) {
  const std::lock_guard lock(changing_);
  if (access() != access::read_write || !file_shows_the_bytes()) return false;
  bool all = true;
  const std::byte* bytes = from.data();
  parts_.for_each_piece({offset, from.size()}, [&](const mapped_piece& piece) {
    all = all && write_piece(piece, bytes);
    bytes += piece.bytes;
  });
  return all;
}

}  // namespace shale::detail
