// Storages in named shared memory, seen by several processes at once.
//
// A segment appears under its name only when it is complete. Who is attached is known by locks that
// the kernel takes back when a process ends, however it ends; no count can be left wrong.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shale/storage.hpp"

namespace [[gnu::visibility("default")]] shale {

/// Who removes the name of a shared segment. The bytes themselves go with the last process that is
/// attached, in every case.
enum class shared_lifetime : std::uint8_t {
  creator,  ///< removed when the creator's last handle goes; attached processes keep their bytes
  counted,  ///< removed when the last process detaches
  manual,   ///< stays until remove_shared
};

/// How `create_shared` makes a segment.
struct shared_options {
  shared_lifetime lifetime = shared_lifetime::creator;

  /// Permission bits, exactly these; other users get nothing unless asked for. The owner must be
  /// able to read and write (0600), else nobody could remove or reclaim the segment.
  unsigned mode = 0600;

  /// Address space to reserve for `grow`, in bytes.
  std::size_t reserve_bytes = 0;
};

/// Creates the segment `name` (1 to 200 letters, digits, '.', '_', '-'; no '/') of `bytes` zero
/// bytes, its memory reserved. Always exclusive; a name whose owners were killed is free again.
/// Throws   already_exists, invalid_argument (name, mode), out_of_space (/dev/shm full), busy, io
/// Threads  safe
/// Lifetime a forked child has no share in a writable mapping: open it there
storage create_shared(const std::string& name, std::size_t bytes,
                      const shared_options& options = {});

/// Attaches to an existing segment, at the size that it has now. `reserve_bytes` leaves room to
/// follow its growth: `grow` shows what another process added.
/// Throws   not_found, access_denied, invalid_argument (name), corrupt (not a segment of ours),
///          busy, io
storage open_shared(const std::string& name, access allowed = access::read_write,
                    std::size_t reserve_bytes = 0);

/// Removes the name; processes that are attached keep their bytes. Returns whether it existed.
/// Throws   access_denied, invalid_argument (name), corrupt (not a segment of ours), busy
bool remove_shared(const std::string& name);

/// A segment as it can be seen from outside.
struct shared_segment {
  std::string name;
  std::size_t bytes = 0;
  shared_lifetime lifetime = shared_lifetime::creator;
  bool attached = false;  ///< some process uses it
  bool dead = false;      ///< those who would have removed the name were killed
};

/// The segments that this process may look at and whose names begin with `prefix`, by name.
/// Throws   access_denied, io (descriptors, /dev/shm)
std::vector<shared_segment> list_shared(std::string_view prefix = {});

/// Removes the names of dead segments, as far as they begin with `prefix`; their memory goes with
/// the last process attached. Returns how many.
/// Throws   access_denied, io (descriptors, /dev/shm), busy
std::size_t reclaim_shared(std::string_view prefix = {});

}  // namespace shale
