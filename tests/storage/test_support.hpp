// What the tests of this floor share: scratch directories, other processes, and counts of what a
// process holds.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "shale/error.hpp"

namespace shale::test {

/// The code of the error that `body` throws; errc{} if it throws none.
inline errc code_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const error& failure) {
    return failure.code();
  }
  return errc{};
}

/// The text of the error that `body` throws, or "".
inline std::string text_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const error& failure) {
    return failure.what();
  }
  return {};
}

/// A new directory, removed with all in it.
class scratch_directory {
 public:
  scratch_directory();
  ~scratch_directory();
  scratch_directory(const scratch_directory&) = delete;
  scratch_directory& operator=(const scratch_directory&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Writes `bytes` bytes, byte i being `pattern(i)`.
void write_pattern(const std::string& path, std::size_t bytes);
constexpr unsigned char pattern(std::size_t at) {
  return static_cast<unsigned char>(at * 131 + (at >> 12) * 7 + 1);
}
std::vector<unsigned char> read_file(const std::string& path);
std::size_t file_size(const std::string& path);

/// Open descriptors of this process.
std::size_t open_descriptors();

/// Mappings of this process whose line in /proc/self/maps contains `what`.
std::size_t mappings_of(const std::string& what);

/// Bytes of address space that this process has taken.
std::size_t address_space_bytes();

/// The helper program of these tests, executed as a process of its own.
class peer {
 public:
  explicit peer(const std::vector<std::string>& arguments);
  ~peer();
  peer(const peer&) = delete;
  peer& operator=(const peer&) = delete;

  /// The next line of its output, without the line feed; "" at its end.
  std::string read_line();
  void write_line(const std::string& line);

  void kill_now();

  /// Waits for its end: the exit status, or minus the signal that ended it.
  int wait();

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
};

/// Runs the helper to its end.
int run_peer(const std::vector<std::string>& arguments);

}  // namespace shale::test
