// Programs whose standard streams are closed, and which print all the same.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <string>

#include "support/bounded.hpp"
#include "support/child_threads.hpp"

namespace shale::test {

/// Some of the standard streams, a bit for each: 1 is the input, 2 the output, 4 that of errors.
class closed_streams {
 public:
  static constexpr unsigned all = 7;

  /// Closes them.
  explicit closed_streams(unsigned bits) noexcept : bits_(bits) {
    for (int stream = 0; stream < 3; ++stream)
      if (is_closed(stream)) ::close(stream);
  }

  /// Writes to each of them.
  void print() const {
    const std::string text(4096, 'L');
    for (int stream = 0; stream < 3; ++stream)
      if (is_closed(stream)) (void)!::write(stream, text.data(), text.size());
  }

 private:
  bool is_closed(int stream) const noexcept { return ((bits_ >> stream) & 1u) != 0; }

  const unsigned bits_;
};

/// Runs `body(streams)` in a forked child that has closed the streams.
/// Returns  whether the child has ended without an exception
template <class Body>
bool runs_without_streams(unsigned bits, Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    start_no_housekeeper();
    const hang_alarm limit;
    const closed_streams streams(bits);
    int status = 1;
    try {
      body(streams);
      status = 0;
    } catch (const std::exception&) {
      status = 2;
    }
    ::_exit(status);
  }
  int status = -1;
  return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace shale::test
