// The compiler and the libraries of this build.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace shale::tools {

/// "gcc 12.2.0".
std::string compiler();

/// Libraries and their versions at run time, or at compile time if a library does not tell it.
std::vector<std::pair<std::string, std::string>> libraries();

}  // namespace shale::tools
