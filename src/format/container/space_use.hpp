// Counts the bytes of a file by what they are used for.
//
// The bytes in use are counted where they are referred to: in the trees and in the descriptors. The
// unused ones are counted in the space map. The counting does not assume that both together are the
// whole file, so a test can check it (space.1). Only the bytes of arrays of later versions cannot
// be counted: they are the remainder.
#pragma once

#include <vector>

#include "format/bytes/types.hpp"
#include "format/generations/generation_view.hpp"
#include "shale/space_report.hpp"

namespace shale::format {

/// The report about a generation. `pins` are the generations that readers hold.
/// Cost     reads all metadata, and no element; memory for the names of the arrays
/// Throws   corrupt, io
space_report space_use(const generation_view& view, const std::vector<generation_range>& pins);

}  // namespace shale::format
