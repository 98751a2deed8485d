// Makes, attaches and removes named segments in /dev/shm. A segment is one page of header, then the
// bytes. Locks show which processes use it.
//
// Invariants
//   segment.1  a name always leads to a complete segment: it is made without a name, and linked
//              last
//   segment.2  locks belong to an open file description that nothing else uses, so that they end
//              with the process and are not kept by a mapping that outlives a handle
//   segment.3  a process removes a name only while it holds the gate lock of the name's inode
//              exclusively, and attaches only while it holds that lock shared: no process attaches
//              to a segment that is being removed, and none removes a newer segment of the same
//              name
//   segment.4  a segment is dead if its name should have been removed but the process that had to
//              do so has ended: lifetime `creator` without the creator, `counted` without any user
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "shale/shared_memory.hpp"
#include "storage/files/file_descriptor.hpp"

namespace shale::detail {

/// Bytes before the data.
inline constexpr std::size_t segment_header_bytes = 4096;

inline constexpr char segment_directory[] = "/dev/shm";
inline constexpr char segment_prefix[] = "shale.";

/// Whether a segment may have this name.
bool is_segment_name(std::string_view name) noexcept;

/// The path of the segment. Throws invalid_argument.
std::string segment_path(const std::string& name);

/// An open segment: a description for the pages, and one for the locks.
struct open_segment {
  file_descriptor pages;
  file_descriptor locks;
  shared_lifetime lifetime = shared_lifetime::creator;
  std::size_t bytes = 0;  ///< of data
};

/// Makes a segment without a name; this process is its creator and a user.
open_segment make_segment(const std::string& path, std::size_t bytes,
                          const create_shared_options& options);

/// Gives the segment its name, and replaces a dead segment of that name. Throws already_exists.
void name_segment(const open_segment& made, const std::string& path);

/// Attaches this process to the living segment of that name; nothing if there is none. Throws
/// access_denied if the segment belongs to another user, unless `owner` allows that.
std::optional<open_segment> attach_segment(const std::string& path, access allowed,
                                           shared_owner owner);

/// Detaches this process, and removes the name if the lifetime requires it. Never fails: if it
/// cannot remove the name now, the next caller finds the segment dead and removes it.
void leave_segment(open_segment& segment, const std::string& path, bool is_creator) noexcept;

enum class removal : std::uint8_t {
  if_dead,          ///< waits for the gate, because the caller wants this name
  if_dead_at_once,  ///< never waits: a segment whose gate is held counts as living
  always,
};

/// Removes the name. Returns whether it existed and was removed.
bool remove_segment(const std::string& path, removal mode);

/// Describes a segment without attaching to it; nothing if it does not exist or is not a segment of
/// Shale.
std::optional<shared_segment> look_at_segment(const std::string& path);

}  // namespace shale::detail
