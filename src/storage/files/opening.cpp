#include "storage/files/opening.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "storage/files/file_descriptor.hpp"

namespace shale::detail {

namespace {

int open_uninterrupted(int directory, const char* path, int flags) noexcept {
  int opened;
  do opened = open_at(directory, path, flags);
  while (opened < 0 && errno == EINTR);
  return opened;
}

// Opens the file again that `found` refers to, and waits for leases on it.
int open_waiting(const file_descriptor& found, int flags) noexcept {
  char self[64];
  std::snprintf(self, sizeof self, "/proc/self/fd/%d", found.get());
  // O_NOFOLLOW is left out, because the name in /proc is a link. No link at the end of the caller's
  // path is followed here: `found` is already the file there.
  return open_uninterrupted(AT_FDCWD, self, flags & ~O_NOFOLLOW);
}

bool is_regular(const file_descriptor& file) noexcept {
  struct stat status {};
  return ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

int open_past_leases(int directory, const std::string& path, int flags) noexcept {
  // With O_NONBLOCK, open(2) of a pipe does not wait for its other end. For a regular file with a
  // lease, it asks the holder to give the lease back, and fails with EAGAIN at once.
  const int opened = open_uninterrupted(directory, path.c_str(), flags | O_NONBLOCK);
  if (opened >= 0 || errno != EAGAIN) return opened;
  // The file is opened through the descriptor that was checked, so no pipe can take its place in
  // between.
  const file_descriptor found(
      open_uninterrupted(directory, path.c_str(), O_PATH | (flags & O_NOFOLLOW)));
  if (!found) return -1;
  if (is_regular(found)) {
    const int waited = open_waiting(found, flags);
    if (waited >= 0 || errno != ENOENT) return waited;  // ENOENT: there is no /proc
  }
  errno = EAGAIN;
  return -1;
}

}  // namespace shale::detail
