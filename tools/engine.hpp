// The executor that a command computes on, with its options, its progress bar and its Ctrl-C.
#pragma once

#include <string>

#include "interrupt.hpp"
#include "progress_bar.hpp"
#include "report.hpp"
#include "shale/executor.hpp"

namespace CLI {
class App;
}

namespace shale::tools {

struct engine_options {
  std::string memory;
  int threads = 0;
  bool progress = false;
  bool quiet = false;

  /// Adds --mem, --threads, --progress and --quiet.
  void add_to(CLI::App& command);
};

/// Make it before anything that may start a thread.
class engine {
 public:
  /// `label` stands in front of the progress bar.
  engine(const engine_options& options, const std::string& label);

  executor& on() noexcept { return executor_; }

  /// What has been done since construction. Takes the progress bar away: print results after it.
  report finish();

 private:
  progress_bar bar_;
  executor executor_;
  interrupt_watch watch_;
  stopwatch clock_;
};

}  // namespace shale::tools
