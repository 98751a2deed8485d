#include "terminal/output.hpp"

#include <fmt/format.h>
#include <stdio_ext.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>

#include "shale/error.hpp"
#include "terminal/interrupt.hpp"
#include "terminal/table.hpp"

namespace shale::tools {

namespace {

// Advice of the library to a program, and the same advice to the user of a command.
struct advice {
  std::string_view to_program;
  std::string_view to_user;
};
constexpr std::array<advice, 3> translations{{
    {"existing_file::replace would replace it", "-f replaces it"},
    {"if the file holds several arrays, read each with its offset and trailing_bytes::ignore",
     "if the file holds several arrays, save each into its own file, or all with np.savez"},
    {"if these are bytes, read them as uint8 (for example with read_raw)",
     "if these are bytes, their dtype is uint8, as in x.raw:uint8"},
}};

std::string in_command_terms(std::string text) {
  for (const advice& translation : translations)
    if (const std::size_t at = text.find(translation.to_program); at != std::string::npos)
      text.replace(at, translation.to_program.size(), translation.to_user);
  return text;
}

}  // namespace

exit_code code_of(const error& failure) noexcept {
  switch (failure.code()) {
    case errc::invalid_argument:
      return exit_usage;
    case errc::corrupt:
      return exit_corrupt;
    case errc::unsupported:
      return exit_unsupported;
    case errc::cancelled:
      return exit_interrupted;
    default:
      return exit_failed;
  }
}

void note_failure(const error& failure) {
  note(fmt::format("shale: {}", in_command_terms(failure.what())));
}

void print_data(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size()) return;
  const int failure = errno;
  if (failure == EPIPE) reader_has_gone();
  throw error::from_errno(code_for_errno(failure), "cannot write to standard output", failure);
}

void print_note(std::string_view text) noexcept {
  if (std::fwrite(text.data(), 1, text.size(), stderr) != text.size() && errno == EPIPE)
    reader_has_gone();
}

bool flush_data() noexcept {
  if (std::fflush(stdout) == 0) return std::ferror(stdout) == 0;
  if (errno == EPIPE) reader_has_gone();
  return false;
}

namespace {

// Escapes the control characters U+007F to U+009F, which JSON does not: some terminals obey them.
std::string without_controls(const std::string& json) {
  std::string safe;
  safe.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const auto byte = static_cast<unsigned char>(json[i]);
    const auto next = i + 1 < json.size() ? static_cast<unsigned char>(json[i + 1]) : 0U;
    if (byte == 0x7f) {
      safe += "\\u007f";
    } else if (byte == 0xc2 && next >= 0x80 && next <= 0x9f) {
      safe += fmt::format("\\u{:04x}", next);
      ++i;
    } else {
      safe += json[i];
    }
  }
  return safe;
}

}  // namespace

void print_json(const nlohmann::json& json) {
  print_data(without_controls(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)) +
             '\n');
}

void print_report(const nlohmann::json& json) noexcept {
  try {
    print_json(json);
    if (!flush_data()) {
      const int failure = errno;
      throw error::from_errno(code_for_errno(failure), "cannot write to standard output", failure);
    }
  } catch (const std::exception& failure) {
    // Otherwise main would try to write the rest of the report again, and fail.
    ::__fpurge(stdout);
    std::clearerr(stdout);
    print_note("shale: what was changed could not be reported\n");
    note(failure.what());
  }
}

void note(std::string_view text) noexcept {
  flush_data();
  try {
    std::string shown;
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      shown += printable(text.substr(at, end - at)) + '\n';
      at = end + 1;
    }
    print_note(shown);
  } catch (const std::exception&) {
    print_note("shale: no memory is left for a message\n");
  }
}

}  // namespace shale::tools
