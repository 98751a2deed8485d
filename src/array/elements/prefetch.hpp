// Starts to read a range of a file.
#pragma once

#include "format/bytes/types.hpp"

namespace shale::arrays {

/// Asks the kernel to bring the range into the page cache, and returns at once. This is a hint: a
/// failure is not reported here, but by the call that reads the range.
void prefetch_range(int descriptor, const format::extent& range) noexcept;

}  // namespace shale::arrays
