// What Ctrl-C does while a computation runs.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "shale/executor.hpp"

namespace shale::tools {

/// While it lives, SIGINT, SIGTERM and SIGHUP cancel `on`, whose calls then throw `cancelled`, so
/// that targets are cleaned up on the way out. A second signal removes the partial files, the
/// command's and the library's, and ends the process at once. Signals that the parent had set to be
/// ignored (nohup) stay ignored.
/// Threads  make it before the first engine call: threads that exist already could take the signal
class interrupt_watch {
 public:
  explicit interrupt_watch(executor& on);
  ~interrupt_watch();
  interrupt_watch(const interrupt_watch&) = delete;
  interrupt_watch& operator=(const interrupt_watch&) = delete;

 private:
  void watch();

  executor& on_;
  struct signals;
  std::unique_ptr<signals> signals_;
  std::thread thread_;
};

/// The signal that a watch has seen, or 0.
int caught_signal() noexcept;

/// Throws   cancelled if a watch has seen a signal; for loops that run outside the engine
void throw_if_interrupted();

}  // namespace shale::tools
