// Maps parts of one open file side by side into one reservation of addresses.
//
// Invariants
//   mapped.1  the map begins on a page boundary of the file, and the owner's first byte lies `skew`
//             bytes after it; so byte p of the owner is byte `skew + p` of the map. The parts of
//             the map follow each other from 0 on without gaps
//   mapped.2  a page is guarded from before it is mapped until the owner is destroyed. `unmap`
//             removes the guards first and then the pages; nobody uses the bytes then
#pragma once

#include <atomic>
#include <boost/interprocess/mapped_region.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/blocks/file_extent.hpp"
#include "storage/blocks/storage_block.hpp"
#include "storage/faults/fault_guard.hpp"
#include "storage/files/file_descriptor.hpp"
#include "storage/files/write_back_record.hpp"
#include "storage/mapped/address_reservation.hpp"
#include "storage/system/fork_safe_mutex.hpp"

namespace shale::detail {

/// The file that a mapping is made from.
struct mapping_source {
  std::shared_ptr<void> keep_alive;  ///< released after the pages are unmapped, last of all
  file_descriptor owned;             ///< owns `descriptor` if the mapping closes it; else empty
  int descriptor = -1;
  std::string path;  ///< for messages
  storage_kind kind = storage_kind::file;
  shale::access access = access::read_only;

  /// The record for write-back errors; null: the mapping makes its own record.
  std::shared_ptr<write_back_record> write_back;

  /// Whether `check` asks the system for write-back errors. Set for a writable file that nobody
  /// flushes.
  bool asks_for_write_back_errors = false;

  bool inherited_by_fork() const noexcept { return access != access::read_write; }

  /// A place in the file, for messages.
  std::string place(std::uint64_t file_offset) const;
};

/// A run of mapped bytes that lie side by side in the file too.
struct mapped_piece {
  std::byte* address;
  std::size_t bytes;
  std::uint64_t file_offset;
};

/// Positions count from the owner's first byte.
/// Threads  `extend`, `make_read_only`, `let_children_inherit` and `replace_by_zeros` one at a
///          time; `unmap` and `let_go_in_child` while no other call runs; others at any time
class mapped_parts {
 public:
  /// Reserves addresses for `capacity_bytes` from the byte `first_offset` of the file on. Lost
  /// bytes set `mark`.
  /// Throws   out_of_memory
  /// Lifetime refers to `source` and `mark`
  mapped_parts(const mapping_source& source, fault_mark& mark, std::uint64_t first_offset,
               std::size_t capacity_bytes);

  /// Whether the extents can be mapped side by side: each extent except the first either begins at
  /// a page boundary both in the file and in the map, or continues the previous extent in the file.
  static bool lie_on_pages(std::span<const file_extent> extents) noexcept;

  /// The owner's first byte; null without capacity.
  std::byte* data() const noexcept {
    return reserved_.address() != nullptr ? reserved_.address() + skew_ : nullptr;
  }

  /// Maps extents after the present end: all of them, or none if it throws.
  void extend(std::span<const file_extent> extents);

  /// Makes all pages read-only. Later stores are a segmentation fault.
  /// Throws   io, out_of_memory
  void make_read_only();

  /// Lets children that are forked later inherit the pages, which are read-only. If the system does
  /// not allow it, nothing changes.
  void let_children_inherit() noexcept;

  /// Whether a child that is forked now inherits the pages.
  bool inherited_by_fork() const noexcept { return inherited_.load(std::memory_order_relaxed); }

  /// Replaces the pages by private zeros. If that fails, the pages become read-only.
  void replace_by_zeros() noexcept;

  /// Removes the guards, and then the pages.
  void unmap() noexcept;

  /// The same in a forked child that did not inherit the pages: it unmaps the memory that replaced
  /// them. If nothing replaced them, other memory may be mapped at their addresses, so nothing is
  /// unmapped.
  void let_go_in_child() noexcept;

  /// Visits the bytes of the range, piece by piece.
  template <class Visit>
  void for_each_piece(byte_range range, Visit visit) const {
    const std::size_t last = skew_ + range.offset + range.bytes;
    for (std::size_t position = skew_ + range.offset; position < last;) {
      const mapped_piece next = piece_at(position, last);
      visit(next);
      position += next.bytes;
    }
  }

  /// Where the byte lies in the file; nothing if no byte is mapped.
  std::optional<std::uint64_t> file_offset(std::size_t offset) const noexcept;

  /// The extent of the file from this byte to the end of its part. A byte is mapped.
  file_extent extent_at(std::size_t offset) const noexcept;

  /// The end of the last mapped byte in the file; 0 if there is none.
  std::uint64_t needed_file_bytes() const noexcept {
    return needed_file_bytes_.load(std::memory_order_relaxed);
  }

 private:
  // An extent in the map. Extents that continue each other in the file are one part.
  struct part {
    std::size_t map_offset = 0;  // in the map; at a page boundary
    std::size_t bytes = 0;
    std::uint64_t file_offset = 0;
    guarded_range guard;
  };

  void reserve(std::uint64_t first_offset, std::size_t capacity);
  void add(file_extent extent);
  void take_back(std::size_t parts, std::size_t last_bytes, std::size_t regions) noexcept;
  void map_pages(std::size_t position, std::size_t bytes, std::uint64_t file_offset);
  int protection() const noexcept;
  const part& part_at(std::size_t map_position) const noexcept;
  mapped_piece piece_at(std::size_t map_position, std::size_t last) const noexcept;

  const mapping_source& source_;
  fault_mark& mark_;
  access access_;                // of the pages: `make_read_only` changes it
  std::atomic<bool> inherited_;  // by children
  const std::size_t skew_;

  // Guards access_, inherited_, parts_ and regions_. A growth that fails removes the parts that it
  // added.
  mutable fork_safe_mutex layout_;

  // Destroyed from the last to the first: guards, pages, addresses.
  address_reservation reserved_;
  std::vector<boost::interprocess::mapped_region> regions_;
  std::vector<part> parts_;
  std::atomic<std::uint64_t> needed_file_bytes_ = 0;
};

}  // namespace shale::detail
