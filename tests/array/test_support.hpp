// What the tests of this floor share: scratch files, deterministic elements, other processes.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "shale/container.hpp"
#include "shale/convert.hpp"

namespace shale::test {

/// A container's name in a new directory, which is removed with all in it.
class scratch {
 public:
  scratch();
  ~scratch();
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline errc code_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const error& failure) {
    return failure.code();
  }
  return errc{};
}

inline std::string text_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const error& failure) {
    return failure.what();
  }
  return {};
}

/// A number for position `i` that is told apart from its neighbours in every dtype.
constexpr int number_at(index_t i) { return static_cast<int>((i * 7 + i / 64 * 3) % 97) + 1; }

/// Row-major elements number_at(i), or their like for bool; made without the engine.
tensor counting(const dims& shape, dtype type);

/// As `counting` for float32, changed by `seed`.
tensor seeded(const dims& shape, int seed);

/// Every dtype there is.
std::vector<dtype> all_dtypes();

void flip_byte(const std::string& path, std::uint64_t at);
std::vector<std::byte> bytes_of_file(const std::string& path);

/// Findings of a verification as one text, so that a failure shows them.
std::string findings_of(const container& file);

/// A line of /proc/self/status in bytes, as "VmHWM".
std::size_t status_bytes(const char* field);

/// The helper program, executed as a process of its own.
class peer {
 public:
  explicit peer(const std::vector<std::string>& arguments);
  ~peer();
  peer(const peer&) = delete;
  peer& operator=(const peer&) = delete;

  /// The next line that it prints; "" at its end.
  std::string read_line();
  void write_line(const std::string& line);
  void kill_now();

  /// The exit status, or minus the signal that ended it.
  int wait();

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
};

}  // namespace shale::test
