// The mapping functions for containers: they map several extents of one open file side by side into
// one address range, and make mappings of a transaction read-only or replace them.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "shale/storage.hpp"
#include "storage/blocks/file_extent.hpp"
#include "storage/blocks/segment_checksums.hpp"
#include "storage/files/write_back_record.hpp"

namespace shale::detail {

struct extent_options {
  shale::access access = access::read_only;

  /// Address space for `append_extents`, in bytes; 0: only for the extents.
  std::size_t reserve_bytes = 0;

  /// For messages.
  std::string path = {};

  /// Released after the last handle is destroyed and the pages are unmapped. It can be a reader's
  /// pin on the bytes, the owner of `descriptor`, or both.
  std::shared_ptr<void> keep_alive = {};

  /// Checksums that are stored with the bytes, or null.
  std::shared_ptr<segment_checksums> sums = {};

  /// The record for write-back errors of a writable mapping; null: the mapping makes its own
  /// record.
  std::shared_ptr<write_back_record> write_back = {};
};

/// The unit of extents: they start at a multiple of it, and all but the last have a multiple of it
/// as length. It is the smallest page size of any system, and the same on all machines.
inline constexpr std::size_t extent_unit_bytes = 4096;

/// Maps `extents` of the open file one after the other. The first may share its first and last
/// system page with other bytes of the file. If the system's pages are too large to map the others
/// next to it, the extents are read into memory instead, unless they are for writing. `descriptor`
/// must stay open while `keep_alive` lives; without a `keep_alive` it is duplicated. It must hold
/// no lock, since a mapping keeps its open file description, and so the locks, alive. Writable
/// mappings reserve no space on the device: the code that made the extents must do so.
/// Cost     one mapping for each extent; extents that continue each other in the file need only one
/// Throws   invalid_argument (alignment), io (the file is shorter), out_of_memory, access_denied,
///          unsupported (the file system, or extents for writing that this system's pages do not
///          fit)
storage map_extents(int descriptor, std::span<const file_extent> extents,
                    const extent_options& options);

/// Maps more extents after the present end and moves the end of `mapped` there. The present end
/// must be at a page boundary, or the first new extent must continue it in the file. `mapped` must
/// reach the owner's end.
void append_extents(storage& mapped, std::span<const file_extent> extents);

/// Makes every handle and the pages read-only: a later store is a segmentation fault. Earlier
/// stores stay. Throws io.
void make_read_only(const storage& mapped);

/// Lets children that are forked later use a mapping that was made read-only. Its bytes must be
/// pinned by what the mapping keeps alive, because a child holds them as long as it likes.
void let_children_inherit(const storage& mapped) noexcept;

/// Detaches a writable mapping from its file: the addresses show private zeros from now on, and the
/// storage is marked failed. Earlier stores stay in the page cache for other users of the file.
void detach_from_file(const storage& mapped) noexcept;

}  // namespace shale::detail
