// The executor of a command, with its options, its progress bar and its handling of Ctrl-C.
#pragma once

#include <string>

#include "commands/report.hpp"
#include "shale/executor.hpp"
#include "terminal/interrupt.hpp"
#include "terminal/progress_bar.hpp"
#include "terminal/stopwatch.hpp"

namespace CLI {
class App;
}

namespace shale::tools {

struct engine_options {
  std::string memory;
  int threads = 0;
  bool progress = false;
  bool quiet = false;
  bool check = false;

  /// Adds --mem, --threads, --progress and --quiet.
  void add_to(CLI::App& command);

  /// Adds --check.
  void add_check_to(CLI::App& command);

  checksum_use checksums() const noexcept {
    return check ? checksum_use::compared : checksum_use::trusted;
  }
};

/// During its lifetime, engine calls of this thread run on its executor.
/// Threads  construct it before anything that may start a thread
class engine {
 public:
  /// `label` precedes the progress bar.
  engine(const engine_options& options, const std::string& label);

  /// Clears the progress bar and returns the cost since construction. Print results afterwards.
  report finish();

 private:
  progress_bar bar_;
  executor executor_;
  executor::scope within_;
  interrupt_watch watch_;
  stopwatch clock_;
};

}  // namespace shale::tools
