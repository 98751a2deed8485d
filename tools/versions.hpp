// What this build was made of.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace shale::tools {

/// "gcc 12.2.0".
std::string compiler();

/// Libraries and their versions; running where they say it themselves, else as compiled against.
std::vector<std::pair<std::string, std::string>> libraries();

}  // namespace shale::tools
