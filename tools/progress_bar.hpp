// A bar on the terminal that says how far a computation has come.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "shale/executor.hpp"

namespace shale::tools {

/// One line of at most `columns`: label, bar, percentage, bytes, rate, time left.
std::string render_bar(std::string_view label, std::uint64_t done_bytes, std::uint64_t total_bytes,
                       double seconds, std::size_t columns);

enum class progress_mode : std::uint8_t {
  automatic,  ///< only if stderr is a terminal
  always,  ///< without a terminal, a line when it begins, at most one a second, and one at the end
  never,
};

/// Draws on stderr: on a terminal one line, at most ten times a second, empty again when it goes.
class progress_bar final : public progress_sink {
 public:
  progress_bar(std::string label, progress_mode mode);
  ~progress_bar() override;
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;

  void advance(std::uint64_t done_bytes, std::uint64_t total_bytes) override;

  /// Empties the terminal's line, so that something else can be printed there; elsewhere prints how
  /// far it came.
  void close();

 private:
  using clock = std::chrono::steady_clock;

  void draw();

  std::string label_;
  bool terminal_ = false;
  bool shown_ = false;
  bool drawn_ = false;    // anything, ever
  bool pending_ = false;  // something newer than the last line
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;
  clock::time_point start_ = clock::now();
  clock::time_point last_;  // when done_ was told
  clock::time_point drawn_at_;
};

}  // namespace shale::tools
