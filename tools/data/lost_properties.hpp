// Names what a file that is no container does not keep of arrays and containers: a line for each
// loss, as in `written::not_kept`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/target.hpp"
#include "shale/logical_dtype.hpp"
#include "shale/snapshot.hpp"

namespace shale::tools {

/// What is lost of the array that `source` copies: its attributes, its fill value unless that is 0,
/// and its logical dtype unless the file keeps it. `kept` is the logical dtype that the file has.
/// Computed values can only lose the logical dtype.
std::vector<std::string> lost_properties(const contents& source,
                                         const std::optional<logical_dtype>& kept);

/// What is lost of a container besides its arrays: its own attributes and those of levels of names.
/// Cost     reads the names of all arrays
std::vector<std::string> lost_level_attributes(const snapshot& generation);

}  // namespace shale::tools
