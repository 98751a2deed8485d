#include "terminal/units.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "shale/error.hpp"

namespace shale::tools {

namespace {

struct unit {
  std::string_view name;  // lower case
  double bytes;
};

constexpr std::array<unit, 15> units{{
    {"", 1},
    {"b", 1},
    {"k", 1024.0},
    {"kib", 1024.0},
    {"kb", 1e3},
    {"m", 1024.0 * 1024},
    {"mib", 1024.0 * 1024},
    {"mb", 1e6},
    {"g", 1024.0 * 1024 * 1024},
    {"gib", 1024.0 * 1024 * 1024},
    {"gb", 1e9},
    {"t", 1024.0 * 1024 * 1024 * 1024},
    {"tib", 1024.0 * 1024 * 1024 * 1024},
    {"tb", 1e12},
    {"byte", 1},
}};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

[[noreturn]] void throw_not_a_size(std::string_view text) {
  throw error(errc::invalid_argument, fmt::format("'{}' is not a size in bytes", text),
              {"write a number and a unit: 4096, 64K, 256MiB, 1.5GiB, 10GB"});
}

}  // namespace

std::uint64_t parse_bytes(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (failure != std::errc() || text.front() == '-') throw_not_a_size(text);
  std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
  if (suffix.starts_with(' ')) suffix.remove_prefix(1);
  const std::string name = lower(suffix);
  for (const unit& candidate : units) {
    if (candidate.name != name) continue;
    const double bytes = number * candidate.bytes;
    // An integral double below 2^63 converts exactly.
    if (!(bytes < 9223372036854775808.0) || bytes != std::floor(bytes)) throw_not_a_size(text);
    return static_cast<std::uint64_t>(bytes);
  }
  throw_not_a_size(text);
}

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  constexpr std::array<std::string_view, 6> names{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  std::size_t at = 0;
  // Values from 1023.5 on would print as 1024, so they take the next unit.
  while (value >= 1023.5 && at + 1 < names.size()) {
    value /= 1024;
    ++at;
  }
  return value < 9.95 ? fmt::format("{:.1f} {}", value, names[at])
                      : fmt::format("{:.0f} {}", value, names[at]);
}

std::string format_count(std::uint64_t count) {
  const std::string digits = fmt::format("{}", count);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string format_share(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  return fmt::format("{:.1f} %", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string format_seconds(double seconds) {
  if (!(seconds >= 0)) return "-";
  if (seconds < 0.9995) return fmt::format("{:.3f} s", seconds);
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02} h", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string format_rate(std::uint64_t bytes, double seconds) {
  if (!(seconds > 0)) return "-";
  const double rate = static_cast<double>(bytes) / seconds;
  if (rate >= 0.9995e9) return fmt::format("{:.2f} GB/s", rate / 1e9);
  if (rate >= 0.9995e6) return fmt::format("{:.0f} MB/s", rate / 1e6);
  return fmt::format("{:.0f} kB/s", rate / 1e3);
}

}  // namespace shale::tools
