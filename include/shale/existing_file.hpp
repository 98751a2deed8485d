// What writers of files do if the name is taken.
#pragma once

#include <cstdint>

namespace [[gnu::visibility("default")]] shale {

/// What happens to a file that already has the name.
enum class existing_file : std::uint8_t {
  replace,  ///< the new file takes the name when it is complete; mappings of the old one keep its
            ///< bytes
  refuse,   ///< throw already_exists, also if the file appears meanwhile
  keep,     ///< `create_file` only: open it with its bytes, and extend it if it is too short
};

}  // namespace shale
