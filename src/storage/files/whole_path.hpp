// Checks a path before it is passed to the system: the system would end it at a zero byte, and use
// another file than the caller named.
#pragma once

#include <string_view>

namespace shale::detail {

/// Throws   invalid_argument if `path` holds a zero byte
void require_whole_path(std::string_view path);

}  // namespace shale::detail
