// Storages in named shared memory, which several processes can use at once.
//
// A segment gets its name only when it is complete. Every attached process holds a lock, which the
// kernel releases when the process ends in any way. So there is no count that could become wrong.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shale/storage.hpp"

namespace [[gnu::visibility("default")]] shale {

/// When the name of a segment is removed. The bytes stay until the last attached process detaches.
enum class shared_lifetime : std::uint8_t {
  creator,  ///< when the creator destroys its last handle
  counted,  ///< when the last process detaches
  manual,   ///< when remove_shared is called
};

/// Options of `create_shared`.
struct create_shared_options {
  shared_lifetime lifetime = shared_lifetime::creator;

  /// Permission bits, 0600 to 0777. The umask does not change them. The owner must be able to read
  /// and write (0600), because otherwise nobody could remove or reclaim the segment.
  unsigned mode = 0600;

  /// Bytes of address space to reserve, so that `grow` can reach that size.
  std::size_t reserve_bytes = 0;
};

/// The users whose segments `open_shared` accepts. Any user could have taken the name first.
enum class shared_owner : std::uint8_t {
  trusted,  ///< the effective user of this process, and root
  anyone,   ///< any user, if the segment's permissions let this process open it
};

/// Options of `open_shared`.
struct open_shared_options {
  shale::access access = shale::access::read_write;

  /// Bytes of address space to reserve, so that `grow` can map bytes that another process has
  /// added, up to that size.
  std::size_t reserve_bytes = 0;

  shared_owner owner = shared_owner::trusted;
};

/// Creates the segment `name` of `bytes` zeros and reserves its memory. A name has 1 to 200
/// letters, digits, '.', '_' or '-'. A name whose owners were killed counts as free.
/// Throws   already_exists, invalid_argument (name, mode), out_of_space (/dev/shm full),
///          out_of_memory, access_denied, busy, io, unsupported (/dev/shm is no tmpfs)
/// Threads  safe
/// Lifetime a forked child does not inherit a writable mapping: open the segment there
storage create_shared(const std::string& name, std::size_t bytes,
                      const create_shared_options& options = {});

/// Attaches to an existing segment at its present size.
/// Throws   not_found, access_denied (permissions, or the segment of another user),
///          invalid_argument (name), corrupt (no segment of Shale), out_of_memory, busy, io
/// Threads  safe
storage open_shared(const std::string& name, const open_shared_options& options = {});

/// Removes the name of a segment and returns whether it existed. Attached processes keep the bytes.
/// Throws   access_denied, invalid_argument (name), corrupt (no segment of Shale), busy, io,
///          out_of_memory
bool remove_shared(const std::string& name);

/// The description of a segment.
struct shared_segment {
  std::string name;
  std::size_t bytes = 0;
  shared_lifetime lifetime = shared_lifetime::creator;
  bool attached = false;  ///< a process uses it
  bool dead = false;      ///< the processes that would have removed the name were killed
};

/// The segments that this process may open and whose names begin with `prefix`, sorted by name. A
/// file of another program is left out if no segment can have its name.
/// Throws   access_denied, io (no descriptors left, /dev/shm)
std::vector<shared_segment> list_shared(std::string_view prefix = {});

/// Removes the names of dead segments that begin with `prefix`, and returns their number. The
/// memory is released when the last attached process detaches. A segment that another process
/// locks at this moment, to attach to it or to remove it, is left alone.
/// Throws   access_denied, io (no descriptors left, /dev/shm)
std::size_t reclaim_shared(std::string_view prefix = {});

}  // namespace shale
