// Whether the large counts were asked for.
#pragma once

#include <cstdlib>
#include <string_view>

namespace shale::test {

/// SHALE_LONG=1 asks for them.
inline bool run_long() {
  const char* const text = std::getenv("SHALE_LONG");
  return text != nullptr && std::string_view(text) == "1";
}

}  // namespace shale::test
