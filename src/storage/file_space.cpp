#include "storage/file_space.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

#include "shale/error.hpp"
#include "storage/file_size_signal.hpp"

namespace shale::detail {

void extend_file(int descriptor, std::uint64_t from, std::uint64_t to, std::string_view path) {
  if (to <= from) return;
  int failure = EFBIG;
  if (to <= static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) {
    const no_file_size_signal guard;
    do
      failure =
          ::posix_fallocate(descriptor, static_cast<off_t>(from), static_cast<off_t>(to - from));
    while (failure == EINTR);
    if (failure == 0) return;
    // Also gives back the part of the space that was found. The first failure is the one to tell.
    if (::ftruncate(descriptor, static_cast<off_t>(from)) != 0) {
    }
  }
  throw error::from_errno(
      code_for_errno(failure), "space for the file could not be reserved", failure,
      {fmt::format("file {}", path), fmt::format("wanted {} bytes, it has {}", to, from),
       failure == EFBIG ? "the size limit is that of the process (`ulimit -f`) "
                          "or of the file system"
                        : "free space on the device, or write elsewhere"});
}

std::uint64_t file_bytes(int descriptor, std::string_view path) {
  struct stat about {};
  if (::fstat(descriptor, &about) != 0)
    throw error::from_errno(errc::io, "the file's size could not be read", errno,
                            {fmt::format("file {}", path)});
  return static_cast<std::uint64_t>(about.st_size);
}

}  // namespace shale::detail
