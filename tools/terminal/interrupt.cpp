#include "terminal/interrupt.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "shale/error.hpp"
#include "shale/unfinished_file.hpp"

namespace shale::tools {

namespace {

std::atomic<int> caught{0};

// Whether a broken pipe ends the command. If not, it is an ordinary error.
bool pipes_end_commands = false;

// The watched executor, or null.
struct watched_executor {
  std::mutex mutex;
  executor* on = nullptr;
};
watched_executor& watched() {
  static watched_executor one;
  return one;
}

// Whether a target has been replaced.
struct replacement {
  std::mutex mutex;  // held while a target is being replaced
  std::atomic<bool> done = false;
};
replacement& replacement_of_target() {
  static replacement one;
  return one;
}

// The executor that the signal handler cancels. A handler may access only lock-free atomics.
std::atomic<executor*> handled_executor{nullptr};
static_assert(std::atomic<executor*>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

constexpr std::array ending_signals = {SIGINT, SIGTERM, SIGHUP};

// Without a watch, a signal ends the process at once. This class delays signals, and can ignore
// them.
class deferred_signals {
 public:
  deferred_signals() noexcept {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : ending_signals) sigaddset(&set, number);
    ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  }
  ~deferred_signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  deferred_signals(const deferred_signals&) = delete;
  deferred_signals& operator=(const deferred_signals&) = delete;

  // Drops signals that have come, and ignores later ones.
  void ignore() noexcept {
    for (const int number : ending_signals) {
      struct sigaction current {};
      ::sigaction(number, nullptr, &current);
      if (current.sa_handler == SIG_DFL) ::signal(number, SIG_IGN);
    }
  }

 private:
  sigset_t before_{};
};

void cancel_from_handler(int number) {
  int none = 0;
  caught.compare_exchange_strong(none, number);
  if (executor* const on = handled_executor.load(); on != nullptr) on->cancel();
}

}  // namespace

// The signals are blocked in every thread, and one thread reads them from a descriptor. Unlike a
// signal handler, this thread may lock, allocate and call the library.
struct interrupt_watch::signals {
  sigset_t before{};
  int arrivals = -1;
  int stop = -1;
  std::vector<std::pair<int, struct sigaction>> handled;  // earlier actions, if there is no thread

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
  // The watch also receives a SIGPIPE that another process sends. A broken pipe signals only the
  // thread that prints.
  if (pipes_end_commands) sigaddset(&set, SIGPIPE);
  signals_->arrivals = ::signalfd(-1, &set, SFD_CLOEXEC);
  signals_->stop = ::eventfd(0, EFD_CLOEXEC);
  if (signals_->arrivals < 0 || signals_->stop < 0)
    throw error::from_errno(errc::io, "cannot watch for signals", errno);
  ::pthread_sigmask(SIG_BLOCK, &set, &signals_->before);
  try {
    thread_ = std::thread([this] { watch(); });
  } catch (const std::system_error&) {
    watch_without_thread(set);
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &signals_->before, nullptr);
    throw;
  }
  const std::lock_guard lock(watched().mutex);
  watched().on = &on_;
  if (caught_signal() != 0) on_.cancel();
}

interrupt_watch::~interrupt_watch() {
  {
    const std::lock_guard lock(watched().mutex);
    watched().on = nullptr;
  }
  if (thread_.joinable()) {
    const std::uint64_t one = 1;
    // The counter cannot be full, so this write cannot fail.
    [[maybe_unused]] const ssize_t written = ::write(signals_->stop, &one, sizeof one);
    thread_.join();
  }
  handled_executor = nullptr;
  // A command that has replaced its target has succeeded. From here to the end of the process no
  // signal may end it as if it had changed nothing.
  const std::lock_guard lock(replacement_of_target().mutex);
  const bool succeeded = replacement_of_target().done;
  for (const auto& [number, action] : signals_->handled) {
    if (succeeded) ::signal(number, SIG_IGN);
    else ::sigaction(number, &action, nullptr);
  }
  if (!succeeded) ::pthread_sigmask(SIG_SETMASK, &signals_->before, nullptr);
}

// If the system allows no thread (ulimit -u), a handler cancels the executor at the first signal.
// It only stores to atomics. The second signal ends the process at once, and partial files remain.
void interrupt_watch::watch_without_thread(const sigset_t& set) {
  handled_executor = &on_;
  for (int number = 1; number < NSIG; ++number) {
    if (sigismember(&set, number) != 1) continue;
    struct sigaction cancelling {};
    cancelling.sa_handler = cancel_from_handler;
    cancelling.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(number, &cancelling, &signals_->handled.emplace_back(number, cancelling).second);
  }
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
    if (caught.exchange(number) != 0) {
      const std::lock_guard lock(replacement_of_target().mutex);
      if (!replacement_of_target().done) raise_without_unfinished_files(number);
    }
    on_.cancel();
  }
}

int caught_signal() noexcept { return caught.load(); }

void heed_broken_pipes() noexcept {
  struct sigaction current {};
  ::sigaction(SIGPIPE, nullptr, &current);
  pipes_end_commands = current.sa_handler != SIG_IGN;
  ::signal(SIGPIPE, SIG_IGN);
}

void reader_has_gone() noexcept {
  int none = 0;
  if (!pipes_end_commands || replacement_of_target().done) return;
  if (!caught.compare_exchange_strong(none, SIGPIPE)) return;
  const std::lock_guard lock(watched().mutex);
  if (watched().on != nullptr) watched().on->cancel();
}

void throw_if_interrupted() {
  if (caught_signal() != 0) throw error(errc::cancelled, "interrupted");
}

void replace_target(const std::function<void()>& end) {
  const std::lock_guard lock(replacement_of_target().mutex);
  deferred_signals deferred;
  throw_if_interrupted();
  end();
  replacement_of_target().done = true;
  deferred.ignore();
}

}  // namespace shale::tools
