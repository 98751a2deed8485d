// What shared memory there is, and what of it nobody owns any more.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "doctor/known.hpp"
#include "shale/shared_memory.hpp"

namespace shale::tools {

struct segment_facts {
  known<std::string> file_system;  ///< of /dev/shm
  known<std::uint64_t> size_bytes;
  known<std::uint64_t> free_bytes;
  std::string failure;  ///< why no segment can be made here; "" if one was
  known<std::vector<shared_segment>> segments;
};

/// Makes a segment of a page to see whether that works, and lists what there is.
segment_facts look_at_segments();

/// Removes the names of segments that no living process owns. Returns what went.
/// Throws   access_denied, io, busy
std::vector<shared_segment> reclaim_segments();

}  // namespace shale::tools
