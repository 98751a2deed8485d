#include "terminal/progress_bar.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "terminal/output.hpp"
#include "terminal/table.hpp"
#include "terminal/units.hpp"

namespace shale::tools {

namespace {

constexpr auto redraw_interval = std::chrono::milliseconds(100);
constexpr auto line_interval = std::chrono::milliseconds(1000);

std::size_t terminal_columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

}  // namespace

std::string render_bar(std::string_view label, std::uint64_t done_bytes, std::uint64_t total_bytes,
                       double seconds, std::size_t columns) {
  done_bytes = std::min(done_bytes, total_bytes);
  const double part =
      total_bytes == 0 ? 1 : static_cast<double>(done_bytes) / static_cast<double>(total_bytes);
  const std::string left =
      part > 0 ? format_seconds(seconds * (1 - part) / part) : std::string("-");
  const std::string numbers =
      fmt::format(" {:3.0f}%  {} of {}  {}  {} left", part * 100, format_bytes(done_bytes),
                  format_bytes(total_bytes), format_rate(done_bytes, seconds), left);
  std::string line(label);
  line += ' ';
  // The bar takes the columns that the text leaves. It is left out if they are too few.
  const std::size_t used = display_width(line) + display_width(numbers) + 3;
  if (used + 8 <= columns) {
    const std::size_t width = std::min<std::size_t>(columns - used, 40);
    const auto filled = static_cast<std::size_t>(part * static_cast<double>(width));
    line += '[' + std::string(filled, '#') + std::string(width - filled, '.') + ']';
  }
  line += numbers;
  // Cut from the end. Everything after the label is ASCII, so a cut there splits no character.
  while (display_width(line) > columns && !line.empty()) line.pop_back();
  return line;
}

progress_bar::progress_bar(std::string label, progress_mode mode) : label_(std::move(label)) {
  terminal_ = ::isatty(STDERR_FILENO) == 1;
  shown_ = mode == progress_mode::always || (mode == progress_mode::automatic && terminal_);
}

progress_bar::~progress_bar() { close(); }

void progress_bar::close() {
  if (drawn_ && terminal_) print_note("\r\033[K");
  else if (drawn_ && pending_) draw();
  drawn_ = false;
}

void progress_bar::draw() {
  const double seconds = std::chrono::duration<double>(last_ - start_).count();
  const std::size_t columns = terminal_ ? terminal_columns() - 1 : 100;
  const std::string line = render_bar(label_, done_, total_, seconds, columns);
  print_note(terminal_ ? "\r\033[K" + line : line + '\n');
  drawn_ = true;
  pending_ = false;
}

void progress_bar::advance(std::uint64_t done_bytes, std::uint64_t total_bytes) {
  if (!shown_) return;
  // A call that is tiny in relation to the previous one, as the end of a reduction is, is not
  // shown.
  if (total_bytes < total_ / 1000) return;
  const clock::time_point now = clock::now();
  // A new call of the engine begins at 0, so its rate counts from here.
  if (done_bytes < done_) start_ = now;
  done_ = done_bytes;
  total_ = total_bytes;
  pending_ = true;
  if (drawn_ && now - drawn_at_ < (terminal_ ? redraw_interval : line_interval)) {
    last_ = now;
    return;
  }
  last_ = drawn_at_ = now;
  draw();
}

}  // namespace shale::tools
