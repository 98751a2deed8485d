// Compares segments of mapped dense arrays with their stored checksums. The process remembers which
// segments it has compared, so that each is compared once.
#pragma once

#include <memory>
#include <string>

#include "format/generations/generation_view.hpp"
#include "storage/blocks/stored_sums.hpp"

namespace shale::arrays {

/// The checksums that a mapping of the array in a pinned generation carries; null if the array has
/// none.
/// Cost     the first comparison reads all of the array's checksums (8 bytes per segment)
std::shared_ptr<detail::stored_sums> sums_of(const format::generation_view& view,
                                             const format::array_record& record,
                                             const std::string& label);

}  // namespace shale::arrays
