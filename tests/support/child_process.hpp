// Runs another program as a child process and exchanges lines of text with it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace shale::test {

class child_process {
 public:
  /// Executes `program` (a path). Throws std::runtime_error if it cannot be started.
  child_process(const std::string& program, const std::vector<std::string>& arguments);

  /// Kills the process if it still runs, and waits for its end.
  ~child_process();

  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;

  /// The next line of its output, without the line feed; "" at the end of the output.
  std::string read_line();
  void write_line(const std::string& line);

  /// Sends SIGKILL; `wait` waits until the process has ended.
  void kill();

  /// Waits for its end and returns the exit status, or minus the signal that ended it.
  int wait();

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
};

}  // namespace shale::test
