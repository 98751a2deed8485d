// Starts to read a range of a file, and says how far reading runs ahead.
#pragma once

#include "format/bytes/types.hpp"
#include "shale/index.hpp"

namespace shale::arrays {

/// The number of chunks per thread that are read ahead.
inline constexpr index_t chunks_ahead = 4;

/// Asks the kernel to bring the range into the page cache, and returns at once. This is a hint: a
/// failure is not reported here, but by the call that reads the range.
void prefetch_range(int descriptor, const format::extent& range) noexcept;

}  // namespace shale::arrays
