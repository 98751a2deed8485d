#include "output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>

#include "shale/error.hpp"
#include "table.hpp"

namespace shale::tools {

namespace {

// What the library advises a program to do, and what whoever typed a command can do.
struct advice {
  std::string_view of_library;
  std::string_view of_command;
};
constexpr std::array<advice, 3> translations{{
    {"existing_file::replace would replace it", "-f replaces it"},
    {"if several arrays were saved into this file, say trailing_bytes::ignore, and where each "
     "begins as offset",
     "if several arrays were saved into this file, save each into its own, or all with np.savez"},
    {"if these are bytes, read them as uint8 (for example with read_raw)",
     "if these are bytes, their dtype is uint8, as in x.raw:uint8"},
}};

std::string in_command_terms(std::string text) {
  for (const advice& each : translations)
    if (const std::size_t at = text.find(each.of_library); at != std::string::npos)
      text.replace(at, each.of_library.size(), each.of_command);
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
  throw error::from_errno(code_for_errno(errno), "write to standard output", errno);
}

void print_json(const nlohmann::json& json) {
  print_data(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n');
}

void note(std::string_view text) noexcept {
  std::fflush(stdout);
  try {
    std::string shown;
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      shown += printable(text.substr(at, end - at)) + '\n';
      at = end + 1;
    }
    std::fwrite(shown.data(), 1, shown.size(), stderr);
  } catch (const std::exception&) {
    std::fputs("shale: no memory is left for a message\n", stderr);
  }
}

}  // namespace shale::tools
