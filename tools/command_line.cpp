#include "command_line.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace shale::tools {

void note(std::string_view line) {
  std::fflush(stdout);
  fmt::print(stderr, "{}\n", line);
}

}  // namespace shale::tools
