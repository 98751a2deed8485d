// Gathers facts about shared memory, and removes segments without an owner.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "doctor/system/known.hpp"
#include "shale/shared_memory.hpp"

namespace shale::tools {

struct segment_facts {
  known<std::string> file_system;  ///< of /dev/shm
  known<std::uint64_t> size_bytes;
  known<std::uint64_t> free_bytes;
  std::string failure;  ///< the reason why no segment can be created; empty if one could
  known<std::vector<shared_segment>> segments;
};

/// Creates a segment of one page to see whether that works, and lists all segments.
segment_facts look_at_segments();

/// Removes the names of segments that no living process owns. Returns the removed segments.
/// Throws   access_denied, io, busy
std::vector<shared_segment> reclaim_segments();

}  // namespace shale::tools
