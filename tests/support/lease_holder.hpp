// Another process that holds a lease on a file, as a server does that exports it.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace shale::test {

/// A child process that holds a lease on a file which nobody has open, and gives it back as soon as
/// the system asks for it: whoever opens the file waits, or is refused at once.
class lease_holder {
 public:
  explicit lease_holder(const std::string& path) {
    int ends[2] = {-1, -1};
    if (::pipe(ends) != 0) return;
    child_ = ::fork();
    if (child_ == 0) run(path.c_str(), ends[1]);
    ::close(ends[1]);
    char told = 'n';
    holds_ = ::read(ends[0], &told, 1) == 1 && told == 'y';
    ::close(ends[0]);
  }
  ~lease_holder() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  lease_holder(const lease_holder&) = delete;
  lease_holder& operator=(const lease_holder&) = delete;

  /// False if the file system grants no leases.
  bool holds() const noexcept { return holds_; }

 private:
  [[noreturn]] static void run(const char* path, int told) noexcept {
    sigset_t asked;
    ::sigemptyset(&asked);
    ::sigaddset(&asked, SIGIO);
    ::pthread_sigmask(SIG_BLOCK, &asked, nullptr);
    const int file = ::open(path, O_RDWR | O_CLOEXEC);
    const bool granted = file >= 0 && ::fcntl(file, F_SETLEASE, F_WRLCK) == 0;
    int arrived = 0;
    if (::write(told, granted ? "y" : "n", 1) == 1 && granted && ::sigwait(&asked, &arrived) == 0)
      ::fcntl(file, F_SETLEASE, F_UNLCK);
    ::_exit(0);
  }

  pid_t child_ = -1;
  bool holds_ = false;
};

}  // namespace shale::test
