// Identifies the file whose bytes a storage has, so that the engine can tell whether two addresses
// show one byte of a file. The identity is recorded when the file is mapped: a comparison costs no
// system call.
//
// Invariants
//   backing.1  for two owners that map files at the same time, `backing_file`s are equal exactly if
//              both map the same file: a mapping keeps its inode, and so the inode's number, in use
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "shale/storage.hpp"
#include "storage/blocks/file_extent.hpp"

namespace shale::detail {

/// A file on this machine, independent of its names. A shared segment is a file too.
struct backing_file {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;

  friend bool operator==(const backing_file&, const backing_file&) noexcept = default;
};

/// Identifies the open file. `path` is for messages. Throws io.
backing_file backing_of(int descriptor, std::string_view path);

/// Whether the bytes are mapped from a file. Shared segments do not count: they are in memory.
inline bool is_mapped(const storage& bytes) noexcept { return bytes.kind() == storage_kind::file; }

/// Whether stores through `written` may be visible through `other` at other addresses: two owners
/// map one file, and stores through the first reach the file. Stores into a private (copy-on-write)
/// mapping are not visible elsewhere. But a private mapping shows stores of others into the file,
/// on all pages that were not stored into through this mapping.
bool stores_show(const storage& written, const storage& other) noexcept;

/// The position in the file of byte `offset` of a mapped storage, and the number of bytes from
/// there on that are contiguous both in the file and in the owner. `offset` is inside the storage.
file_extent extent_at(const storage& mapped, std::size_t offset) noexcept;

/// Reads the bytes from `offset` on by the file's descriptor. A page that is not in the page cache
/// is read alone; a fault reads its neighbours, too. Returns false if the bytes have no file that
/// shows them, or if the system refuses: then the caller uses the pages, and learns the reason.
/// `into` may have changed.
bool read_file(const storage& bytes, std::size_t offset, std::span<std::byte> into) noexcept;

/// Writes the bytes from `offset` on by the file's descriptor. Only the blocks with these bytes
/// become dirty; a store makes a whole page of the page cache dirty, of up to 2 MiB. Returns false
/// as `read_file`, and if the owner does not allow stores. The handle must allow them.
/// Throws   out_of_space
bool write_file(const storage& bytes, std::size_t offset, std::span<const std::byte> from);

}  // namespace shale::detail
