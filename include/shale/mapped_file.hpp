// Maps existing files, and creates files and maps them, as storages.
//
// Invariants
//   file.1  a mapping is made from its own descriptor; a path is opened only once
//   file.2  a call that fails leaves no descriptor, no address space and no new file behind
//   file.3  only `grow`, and `create_file` on request, change the size of an existing file; if
//           another process truncates a file in the moment of a write, it may become longer again
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "shale/existing_file.hpp"
#include "shale/storage.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The part of a file to map, and the kind of access.
struct map_options {
  /// The first byte to map. It need not be a multiple of the page size.
  std::uint64_t offset = 0;

  /// Bytes to map. Without a value, the mapping ends at the end of the file.
  std::optional<std::size_t> bytes = std::nullopt;

  shale::access access = shale::access::read_only;

  /// Bytes of address space to reserve, so that `grow` can reach that size.
  std::size_t reserve_bytes = 0;

  /// Reads all bytes into memory before the call returns.
  bool populate = false;
};

/// Maps an existing regular file. The storage has a descriptor of its own. `grow` of a read_write
/// mapping makes the file larger; `grow` of any other maps bytes that others have appended.
/// Cost     O(1), plus reading with `populate`. A file on a network file system, or on overlayfs
///          unless access is read_write, is read whole into pool memory instead (docs/storage.md)
/// Throws   not_found; access_denied; invalid_argument (range outside the file, not a regular
///          file); out_of_memory (also for lack of address space); unsupported (read_write on a
///          network file system); io
/// Threads  safe
/// Lifetime the mapping stays valid if the file is removed. If the file is truncated, later calls
///          throw `io`, and no signal is raised
storage map_file(const std::string& path, const map_options& options = {});

/// Maps the file of an open descriptor, which stays the caller's. The mapping shares its open file
/// description, so locks on that are held until the mapping ends.
/// Throws   as for a path; invalid_argument (no open descriptor), access_denied (the descriptor was
///          opened for another kind of access, or with O_PATH)
storage map_file(int descriptor, const map_options& options = {});

/// How `map_file` treats a file. It depends on the file system (docs/storage.md).
enum class mapping_support : std::uint8_t {
  mapped,   ///< the storage is a mapping of the file
  copied,   ///< the file is read into memory of the default pool
  refused,  ///< `map_file` throws unsupported, or invalid_argument for files of /proc and the like
};

/// The way in which `map_file(path, {.access = wanted})` would treat a file, or, for a directory,
/// the files in it.
/// Cost     one system call; opens nothing
/// Throws   not_found, access_denied, io
mapping_support mapping_support_at(const std::string& path, access wanted = access::read_only);

/// Options of `create_file`.
struct create_file_options {
  /// `keep` makes an existing file longer if it is too short, and never shorter.
  existing_file existing = existing_file::refuse;

  /// Permission bits of a new file, from which the umask of the process is removed. A file that
  /// replaces another belongs to the user and the group of the process. Group and others get
  /// a bit only if `mode` has it and the old file gave it to them; the umask does not matter. The
  /// access list of the old file (a POSIX ACL) is kept, as far as these bits allow. So nobody but
  /// the owner of the new file gains access by the replacement. If the permissions of the old file
  /// are unknown, or if its list cannot be kept, group and others get none.
  unsigned mode = 0644;

  /// Bytes of address space to reserve, so that `grow` can reach that size.
  std::size_t reserve_bytes = 0;
};

/// Creates a file of `bytes` zeros, reserves its space on the device, and maps it for reading and
/// writing. If it fails, no new file stays behind.
/// Cost     the time to reserve the space; if the file system cannot reserve it, the time to write
///          zeros
/// Throws   already_exists; out_of_space (full disk, quota, `ulimit -f`); access_denied (also if a
///          file to be replaced is immutable, append-only, or another user's in a sticky folder);
///          not_found (directory); invalid_argument (not a regular file; a mount point to be
///          replaced); unsupported (network file system); out_of_memory; io
/// Threads  safe
storage create_file(const std::string& path, std::size_t bytes,
                    const create_file_options& options = {});

}  // namespace shale
