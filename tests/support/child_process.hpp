// Another program, executed as a process of its own, with a line-wise conversation; and a directory
// for the files that the two share.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace shale::test {

/// A new directory, removed with all in it.
class scratch_directory {
 public:
  scratch_directory();
  ~scratch_directory();
  scratch_directory(const scratch_directory&) = delete;
  scratch_directory& operator=(const scratch_directory&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

class child_process {
 public:
  /// Executes `program` (a path). Throws std::runtime_error if it cannot be started.
  child_process(const std::string& program, const std::vector<std::string>& arguments);

  /// Kills it if it still runs.
  ~child_process();

  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;

  /// The next line of its output, without the line feed; "" at its end.
  std::string read_line();
  void write_line(const std::string& line);

  /// SIGKILL, and waits until it is gone.
  void kill();

  /// Waits for its end: the exit status, or minus the signal that ended it.
  int wait();

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
};

}  // namespace shale::test
