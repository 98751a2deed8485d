// Starting to read a range of a file.
#pragma once

#include "format/types.hpp"

namespace shale::arrays {

/// Asks the kernel to bring the range into the page cache; returns at once. A hint: failures are
/// left to whoever reads.
void read_ahead(int descriptor, const format::extent& range) noexcept;

}  // namespace shale::arrays
