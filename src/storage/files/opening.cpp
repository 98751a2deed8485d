#include "storage/files/opening.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "storage/files/file_descriptor.hpp"

namespace shale::detail {

namespace {

int open_at(int directory, const char* path, int flags) noexcept {
  int opened;
  do opened = ::openat(directory, path, flags | O_CLOEXEC);
  while (opened < 0 && errno == EINTR);
  return opened;
}

// Opens the file again that `found` refers to, and waits for leases on it.
int open_waiting(const file_descriptor& found, int flags) noexcept {
  char self[64];
  std::snprintf(self, sizeof self, "/proc/self/fd/%d", found.get());
  // The link itself is followed, but not any that the path ended in: `found` is what is there.
  return open_at(AT_FDCWD, self, flags & ~O_NOFOLLOW);
}

bool is_regular(const file_descriptor& file) noexcept {
  struct stat about {};
  return ::fstat(file.get(), &about) == 0 && S_ISREG(about.st_mode);
}

}  // namespace

int open_past_leases(int directory, const std::string& path, int flags) noexcept {
  // O_NONBLOCK: opening a pipe must not wait for its other end. But of a regular file with a lease,
  // open(2) then answers EAGAIN at once, after it has asked the holder to give the lease back.
  const int opened = open_at(directory, path.c_str(), flags | O_NONBLOCK);
  if (opened >= 0 || errno != EAGAIN) return opened;
  // The file that is looked at is the one that is opened, so no pipe can take its place in between.
  const file_descriptor found(open_at(directory, path.c_str(), O_PATH | (flags & O_NOFOLLOW)));
  if (!found) return -1;
  if (is_regular(found)) {
    const int waited = open_waiting(found, flags);
    if (waited >= 0 || errno != ENOENT) return waited;  // ENOENT: there is no /proc
  }
  errno = EAGAIN;
  return -1;
}

}  // namespace shale::detail
