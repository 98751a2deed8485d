#include "interrupt.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "command_line.hpp"
#include "shale/error.hpp"
#include "shale/foreign_file.hpp"

namespace shale::tools {

namespace {
std::atomic<int> caught{0};
}  // namespace

// The signals are blocked in every thread and read from a descriptor by one, which may therefore
// lock, allocate and call the library as a signal handler never could.
struct interrupt_watch::signals {
  sigset_t before{};
  int arrivals = -1;
  int stop = -1;

  ~signals() {
    if (arrivals >= 0) ::close(arrivals);
    if (stop >= 0) ::close(stop);
  }
};

interrupt_watch::interrupt_watch(executor& on) : on_(on), signals_(std::make_unique<signals>()) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction current {};
    ::sigaction(number, nullptr, &current);
    if (current.sa_handler != SIG_IGN) sigaddset(&set, number);
  }
  signals_->arrivals = ::signalfd(-1, &set, SFD_CLOEXEC);
  signals_->stop = ::eventfd(0, EFD_CLOEXEC);
  if (signals_->arrivals < 0 || signals_->stop < 0)
    throw error::from_errno(errc::io, "watch for signals", errno);
  ::pthread_sigmask(SIG_BLOCK, &set, &signals_->before);
  try {
    thread_ = std::thread([this] { watch(); });
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &signals_->before, nullptr);
    throw;
  }
}

interrupt_watch::~interrupt_watch() {
  const std::uint64_t one = 1;
  // The counter cannot be full, so this write cannot fail.
  [[maybe_unused]] const ssize_t written = ::write(signals_->stop, &one, sizeof one);
  thread_.join();
  ::pthread_sigmask(SIG_SETMASK, &signals_->before, nullptr);
}

void interrupt_watch::watch() {
  std::array<pollfd, 2> descriptors{{{signals_->arrivals, POLLIN, 0}, {signals_->stop, POLLIN, 0}}};
  while (true) {
    if (::poll(descriptors.data(), descriptors.size(), -1) < 0) continue;
    if ((descriptors[1].revents & POLLIN) != 0) return;
    signalfd_siginfo info{};
    if (::read(signals_->arrivals, &info, sizeof info) != sizeof info) continue;
    const auto number = static_cast<int>(info.ssi_signo);
    if (caught.exchange(number) != 0) exit_without_unfinished_files(exit_interrupted);
    on_.cancel();
  }
}

int caught_signal() noexcept { return caught.load(); }

void throw_if_interrupted() {
  if (caught_signal() != 0) throw error(errc::cancelled, "interrupted");
}

}  // namespace shale::tools
