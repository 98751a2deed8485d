#include "output.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>

#include "shale/error.hpp"
#include "table.hpp"

namespace shale::tools {

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
