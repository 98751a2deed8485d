// Reads the tree of retained generations. A writer must not reuse their space, even if no reader
// pins them.
#pragma once

#include <cstdint>
#include <vector>

#include "format/pages/tree.hpp"

namespace shale::format {

/// The numbers of all retained generations.
/// Throws   corrupt: a key of the tree is not a generation
std::vector<std::uint64_t> list_retained(const tree& retained);

}  // namespace shale::format
