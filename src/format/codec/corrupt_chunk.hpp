// The error of a chunk that does not decode.
#pragma once

#include <string>

#include "shale/error.hpp"

namespace shale::format {

[[noreturn]] inline void throw_corrupt_chunk(const std::string& reason) {
  throw error(errc::corrupt, "a chunk does not decode", {reason});
}

}  // namespace shale::format
