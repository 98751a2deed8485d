// A named segment in /dev/shm: one page of header, then the bytes; and the locks that say who
// lives.
//
// Invariants
//   segment.1  a name leads to a complete segment: it is made without a name, and linked last
//   segment.2  locks are owned by an open file description that nothing else uses, so that they end
//              with the process, and not with a mapping that outlives a handle
//   segment.3  a name is taken away only under the exclusive gate of the inode that it then leads
//              to, and a process attaches only under the shared gate of it: nobody attaches to what
//              is being removed, and nobody removes what another process has put there since
//   segment.4  a segment is dead when its name should be gone and whoever was to remove it is gone:
//              lifetime `creator` without the creator, `counted` without any user
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "shale/shared_memory.hpp"
#include "storage/file_descriptor.hpp"

namespace shale::detail {

/// Bytes before the data.
inline constexpr std::size_t segment_header_bytes = 4096;

inline constexpr char segment_directory[] = "/dev/shm";
inline constexpr char segment_prefix[] = "shale.";

/// Where the segment lies. Throws invalid_argument.
std::string segment_path(const std::string& name);

/// An open segment: a description for the pages, and one for the locks.
struct open_segment {
  file_descriptor pages;
  file_descriptor locks;
  shared_lifetime lifetime = shared_lifetime::creator;
  std::size_t bytes = 0;  ///< of data
};

/// A new segment without a name; this process is its creator and a user.
open_segment make_segment(const std::string& path, std::size_t bytes,
                          const shared_options& options);

/// Gives it its name, over a dead segment if need be. Throws already_exists.
void name_segment(const open_segment& made, const std::string& path);

/// The living segment of that name, this process being a user from now on; nothing if there is
/// none.
std::optional<open_segment> attach_segment(const std::string& path, access allowed);

/// Gives up this process's use, and takes the name away if the lifetime says so. Never fails: what
/// it cannot do now is left to the next caller, who finds the segment dead.
void leave_segment(open_segment& from, const std::string& path, bool is_creator) noexcept;

enum class removal : std::uint8_t { if_dead, always };

/// Takes the name away. Returns whether it was there, and went.
bool remove_segment(const std::string& path, removal when);

/// What can be said about a segment without attaching; nothing if it is gone or not ours.
std::optional<shared_segment> look_at_segment(const std::string& path);

}  // namespace shale::detail
