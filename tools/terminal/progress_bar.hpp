// A progress bar on the terminal.
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
  always,     ///< without a terminal: a first line, at most one line a second, and a last line
  never,
};

/// Draws on stderr. On a terminal, it draws one line at most ten times a second and clears it
/// at its end.
class progress_bar final : public progress_sink {
 public:
  progress_bar(std::string label, progress_mode mode);
  ~progress_bar() override;
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;

  void advance(std::uint64_t done_bytes, std::uint64_t total_bytes) override;

  /// Clears the terminal's line, so that something else can be printed there. Without a terminal,
  /// it prints a last line.
  void close();

 private:
  using clock = std::chrono::steady_clock;

  void draw();

  std::string label_;
  bool terminal_ = false;
  bool shown_ = false;
  bool drawn_ = false;    // whether a line has been drawn
  bool pending_ = false;  // whether progress has been made since the last line
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;
  clock::time_point start_ = clock::now();
  clock::time_point last_;  // when done_ was set
  clock::time_point drawn_at_;
};

}  // namespace shale::tools
