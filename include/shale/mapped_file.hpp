// Storages over files: map what exists, or create and map.
//
// Invariants
//   file.1  a mapping is made from a descriptor of its own, never by opening a name twice
//   file.2  whatever fails leaves no descriptor, no address space and no new file behind
//   file.3  an existing file never changes its size, but by `grow` and by create_file that asks
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "shale/storage.hpp"

namespace [[gnu::visibility("default")]] shale {

/// What part of a file to map, and for what.
struct map_options {
  /// First byte of the file to map; any value, not only page multiples.
  std::uint64_t offset = 0;

  /// Bytes to map; absent: to the end of the file.
  std::optional<std::size_t> length = std::nullopt;

  /// What stores do: see `access`.
  shale::access access = shale::access::read_only;

  /// Address space to reserve for `grow`, in bytes; 0: just the length.
  std::size_t reserve_bytes = 0;

  /// Brings every byte into memory before returning.
  bool populate = false;
};

/// Maps an existing regular file. The descriptor is private to the storage and closed with it.
/// Growing a read_write mapping grows the file; growing another follows what the file has become.
/// Cost     O(1), plus reading if `populate`. Read whole into pool memory instead
/// (docs/storage.md):
///          files on network file systems, and on overlayfs unless access is read_write
/// Throws   not_found, access_denied, invalid_argument (range outside the file, not a regular
///          file), out_of_memory (address space), unsupported (read_write on a network file
///          system), io
/// Lifetime the mapping survives removal of the file; truncation turns into `io`, never a signal
storage map_file(const std::string& path, const map_options& options = {});

/// The same over an open descriptor, which stays the caller's. The mapping shares its open file
/// description: locks held through that last as long as the mapping.
storage map_file(int descriptor, const map_options& options = {});

/// What `map_file` does about a file, by the file system that the file is on (docs/storage.md).
enum class mapping_support : std::uint8_t {
  mapped,   ///< the storage is the file's own pages
  copied,   ///< the storage is memory of the default pool that the file is read into
  refused,  ///< `unsupported`; `invalid_argument` where the kernel makes bytes up (/proc)
};

/// What `map_file(path, {.access = wanted})` would do; for a directory, with the files in it.
/// Cost     one system call; opens nothing
/// Throws   not_found, access_denied, io
mapping_support mapping_support_at(const std::string& path, access wanted = access::read_only);

/// What `create_file` does about an existing file, and with what rights it makes one.
struct create_options {
  /// Refuse if the file exists (already_exists). Otherwise an existing file is kept, and grown if
  /// it is shorter than wanted; or, with `truncate`, replaced by a new one under its name, while
  /// mappings of the old one keep their bytes.
  bool exclusive = true;
  bool truncate = false;

  /// Permission bits of a new file, less the process's umask.
  unsigned mode = 0644;

  /// Address space to reserve for `grow`, in bytes.
  std::size_t reserve_bytes = 0;
};

/// Creates `path` with `bytes` zero bytes, their space reserved on the device, and maps them for
/// reading and writing. On failure no new file is left behind.
/// Throws   already_exists, out_of_space (full disk, quota, `ulimit -f`), access_denied, not_found
///          (directory), unsupported (network file system), io
storage create_file(const std::string& path, std::size_t bytes, const create_options& options = {});

}  // namespace shale
