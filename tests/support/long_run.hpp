// Tells tests whether to use their large counts.
#pragma once

#include <cstdlib>
#include <string_view>

namespace shale::test {

/// True if SHALE_LONG=1 is set.
inline bool run_long() {
  const char* const text = std::getenv("SHALE_LONG");
  return text != nullptr && std::string_view(text) == "1";
}

}  // namespace shale::test
