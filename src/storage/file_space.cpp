#include "storage/file_space.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <limits>

#include "shale/error.hpp"

namespace shale::detail {

namespace {

// Growing a file beyond the process's limit raises SIGXFSZ, which kills by default. While one of
// these lives, the signal of this thread's own calls is held back, and swallowed at the end.
class no_file_size_signal {
 public:
  no_file_size_signal() noexcept {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~no_file_size_signal() {
    const timespec at_once{};
    if (!was_pending_)
      while (sigtimedwait(&signal_, nullptr, &at_once) < 0 && errno == EINTR) {
      }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  no_file_size_signal(const no_file_size_signal&) = delete;
  no_file_size_signal& operator=(const no_file_size_signal&) = delete;

 private:
  sigset_t signal_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

}  // namespace

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
  const errc code = failure == EFBIG ? errc::out_of_space : code_for_errno(failure);
  throw error::from_errno(
      code, "space for the file could not be reserved", failure,
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
