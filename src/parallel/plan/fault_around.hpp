// Holds the size of the range that a page fault maps.
#pragma once

#include "shale/index.hpp"

namespace shale::parallel {

/// A fault on a page of a file also maps the neighbouring pages that are in the page cache, in an
/// aligned range of this many bytes. So pieces of a file that lie nearer than this become resident
/// together, and longer pieces are no faster to read.
/// Source   `fault_around_bytes` of the Linux kernel, whose default this is
inline constexpr index_t fault_around_bytes = index_t{64} << 10;

}  // namespace shale::parallel
