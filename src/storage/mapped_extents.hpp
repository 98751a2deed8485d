// The door for containers: several extents of one open file side by side in one address range, and
// what a transaction does to its mappings.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "shale/storage.hpp"
#include "storage/file_extent.hpp"

namespace shale::detail {

struct extent_options {
  shale::access access = access::read_only;

  /// Address space for `append_extents`, in bytes; 0: just the extents.
  std::size_t reserve_bytes = 0;

  /// For messages.
  std::string path = {};

  /// Goes when the last handle has gone and the pages are unmapped: a reader's pin on the bytes,
  /// the owner of `descriptor`, or both.
  std::shared_ptr<void> keep_alive = {};
};

/// Maps `extents` of the open file one behind the other. All but the last are whole pages, and all
/// start on a page of the file. `descriptor` must stay open as long as `keep_alive` lives; without
/// a `keep_alive` it is duplicated. It must hold no lock, since a mapping keeps its open file
/// description, and with it the locks, alive. Writable mappings reserve nothing on the device: that
/// is for whoever made the extents.
/// Cost     one mapping an extent; extents that continue each other in the file are one
/// Throws   invalid_argument (alignment), io (the file is shorter), out_of_memory, access_denied,
///          unsupported
storage map_extents(int descriptor, std::span<const file_extent> extents,
                    const extent_options& options);

/// Maps more behind the present end, which must be on a page or be continued in the file, and moves
/// `mapped`'s own end there. `mapped` must reach the owner's end.
void append_extents(storage& mapped, std::span<const file_extent> extents);

/// Takes writing away from every handle and from the hardware: a later store is a segmentation
/// fault. What was stored stays. Throws io.
void make_read_only(const storage& mapped);

/// Cuts a writable mapping off from its file: what was stored stays in the page cache for whoever
/// owns the file, the addresses show private zeros, and the storage has failed.
void abandon(const storage& mapped) noexcept;

}  // namespace shale::detail
