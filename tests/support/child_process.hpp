// Another program, executed as a process of its own, with a line-wise conversation.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace shale::test {

class child_process {
 public:
  /// Executes `program` (a path). Throws std::runtime_error if it cannot be started.
  child_process(const std::string& program, const std::vector<std::string>& arguments);

  /// Kills it if it still runs, and waits until it is gone.
  ~child_process();

  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;

  /// The next line of its output, without the line feed; "" at its end.
  std::string read_line();
  void write_line(const std::string& line);

  /// SIGKILL; `wait` tells when it is gone.
  void kill();

  /// Waits for its end: the exit status, or minus the signal that ended it.
  int wait();

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
};

}  // namespace shale::test
