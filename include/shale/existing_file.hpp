// The treatment of a file that already has the name of the file to be made.
#pragma once

#include <cstdint>

namespace [[gnu::visibility("default")]] shale {

/// What happens to a file that already has the name.
enum class existing_file : std::uint8_t {
  replace,  ///< the new file replaces it when it is complete; mappings of it keep their bytes
  refuse,   ///< throw already_exists, also if the file appears meanwhile
  keep,     ///< `create_file` only: open it with its bytes, and extend it if it is too short
};

}  // namespace shale
