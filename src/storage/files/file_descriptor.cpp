#include "storage/files/file_descriptor.hpp"

#include <fcntl.h>

#include <cerrno>

namespace shale::detail {

namespace {

constexpr int standard_streams = 3;

}  // namespace

file_descriptor duplicate(int descriptor) noexcept {
  const int made = ::fcntl(descriptor, F_DUPFD_CLOEXEC, standard_streams);
  if (made < 0 && errno == EINVAL) errno = EMFILE;  // the limit allows no number from 3 on
  return file_descriptor(made);
}

int beyond_standard_streams(int made) noexcept {
  if (made < 0 || made >= standard_streams) return made;
  const int moved = duplicate(made).release();
  const int failure = errno;
  ::close(made);
  errno = failure;
  return moved;
}

int open_at(int directory, const char* path, int flags, unsigned mode) noexcept {
  constexpr int makes_file = O_CREAT | O_EXCL;
  const int made = ::openat(directory, path, flags | O_CLOEXEC, static_cast<mode_t>(mode));
  const int opened = beyond_standard_streams(made);
  if (made >= 0 && opened < 0 && (flags & makes_file) == makes_file) {
    const int failure = errno;
    ::unlinkat(directory, path, 0);
    errno = failure;
  }
  return opened;
}

file_descriptor open_descriptor(const std::string& path, int flags, unsigned mode) noexcept {
  int opened;
  do opened = open_at(AT_FDCWD, path.c_str(), flags, mode);
  while (opened < 0 && errno == EINTR);
  return file_descriptor(opened);
}

errc code_for_opened_file(int os_errno) noexcept {
  return os_errno == EROFS ? errc::io : code_for_errno(os_errno);
}

}  // namespace shale::detail
