// The output of a shell command, line by line.
#pragma once

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace shale::test {

/// The lines that a command writes to its standard output, without their ends.
inline std::vector<std::string> lines_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::vector<std::string> result;
  std::array<char, 4096> line;
  while (pipe && std::fgets(line.data(), line.size(), pipe.get())) {
    result.emplace_back(line.data());
    if (result.back().ends_with('\n')) result.back().pop_back();
  }
  return result;
}

}  // namespace shale::test
