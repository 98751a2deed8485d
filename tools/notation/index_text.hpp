// The slice of an address, in NumPy's syntax: "[10:20, ::-1]".
#pragma once

#include <string_view>
#include <vector>

#include "notation/text_cursor.hpp"
#include "shale/index_entry.hpp"

namespace shale::tools {

/// Reads the entries and the closing bracket; the opening bracket has been read. Errors
/// about an entry get `advice`.
/// Throws   located_error: no index, a step of 0, two '...', too many entries
std::vector<index_entry> take_index(text_cursor& text, std::string_view advice);

}  // namespace shale::tools
