// Turns the process's limit of file sizes (`ulimit -f`) into the error EFBIG instead of a signal.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <ctime>

namespace shale::detail {

/// Growing a file beyond the limit, or writing after it, raises SIGXFSZ, which ends the process by
/// default. While an object of this class lives, the signal of this thread's own calls is blocked;
/// the destructor discards it. errno is not changed.
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
    const int number = errno;
    const timespec at_once{};
    if (!was_pending_)
      while (sigtimedwait(&signal_, nullptr, &at_once) < 0 && errno == EINTR) {
      }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = number;
  }
  no_file_size_signal(const no_file_size_signal&) = delete;
  no_file_size_signal& operator=(const no_file_size_signal&) = delete;

 private:
  sigset_t signal_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

}  // namespace shale::detail
