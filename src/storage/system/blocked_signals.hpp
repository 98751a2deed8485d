// Blocks signals in the calling thread, so that a thread that it starts inherits the blocked set.
// The signals of the host program are not for threads of this library.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace shale::detail {

/// While it lives, all signals are blocked in the thread that made it.
class blocked_signals {
 public:
  blocked_signals() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~blocked_signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  blocked_signals(const blocked_signals&) = delete;
  blocked_signals& operator=(const blocked_signals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace shale::detail
