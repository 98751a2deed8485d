// Handles Ctrl-C and other signals during a computation, and a broken pipe at stdout or stderr.
#pragma once

#include <signal.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "shale/executor.hpp"

namespace shale::tools {

/// During its lifetime, SIGINT, SIGTERM, SIGHUP and SIGPIPE cancel the executor `on`. Its calls
/// then throw `cancelled`, and the unwinding cleans up targets. A second signal removes the partial
/// files of the command and the library, and the process dies of it at once. A signal that the
/// parent process ignores (nohup) remains ignored. If the system allows no thread, a second signal
/// ends the process without removing files.
/// Threads  construct it before the first engine call: an older thread could receive the signal
class interrupt_watch {
 public:
  explicit interrupt_watch(executor& on);
  ~interrupt_watch();
  interrupt_watch(const interrupt_watch&) = delete;
  interrupt_watch& operator=(const interrupt_watch&) = delete;

 private:
  void watch();
  void watch_without_thread(const sigset_t& set);

  executor& on_;
  struct signals;
  std::unique_ptr<signals> signals_;
  std::thread thread_;
};

/// The signal that a watch has received; SIGPIPE after `reader_has_gone`; 0 if there was none.
int caught_signal() noexcept;

/// Turns a broken pipe into an error (EPIPE) of the call that prints. The signal SIGPIPE would end
/// the process without cleaning up. Call it once, before anything is printed.
void heed_broken_pipes() noexcept;

/// Cancels the watched executor. Call it after a print failed with EPIPE. It does nothing if the
/// parent process ignores SIGPIPE, or if a target has been replaced: then the command has
/// succeeded.
/// Threads  any
void reader_has_gone() noexcept;

/// For loops outside the engine.
/// Throws   cancelled if a signal has been caught
void throw_if_interrupted();

/// Calls `end`, which replaces a target, unless a signal has been caught. While `end` runs, a
/// second signal is delayed. After `end`, signals no longer end the command, because its death by a
/// signal would wrongly say that the target is unchanged.
/// Throws   cancelled if a signal has been caught; exceptions of `end`
void replace_target(const std::function<void()>& end);

}  // namespace shale::tools
