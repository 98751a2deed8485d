// Owners of mapped bytes. An owner maps parts of one open file side by side into one reservation of
// addresses.
//
// Invariants
//   mapped.1  the map begins on a page boundary of the file, and the owner's first byte lies `skew`
//             bytes after it; so byte p of the owner is byte `skew + p` of the map. The parts of
//             the map follow each other from 0 on without gaps
//   mapped.2  a page is guarded from before it is mapped until the owner is destroyed. The
//             destructor removes the guards first and then the pages; nobody uses the bytes then
//   mapped.3  the pages are mapped from the descriptor itself, never from a file that was reopened
//             by name; the block owns the descriptor or `keep_alive` keeps it open; `keep_alive` is
//             released last
//   mapped.4  a write-back error that one call received is thrown by every later call that brings
//             bytes in, checks or flushes, while the mapping is writable
#pragma once

#include <atomic>
#include <boost/interprocess/mapped_region.hpp>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "storage/blocks/file_extent.hpp"
#include "storage/blocks/storage_block.hpp"
#include "storage/faults/fault_guard.hpp"
#include "storage/files/file_descriptor.hpp"
#include "storage/files/write_back_record.hpp"
#include "storage/mapped/address_reservation.hpp"
#include "storage/system/fork_handlers.hpp"
#include "storage/system/fork_safe_mutex.hpp"

namespace shale::detail {

/// The file that a mapping is made from.
struct mapping_source {
  std::shared_ptr<void> keep_alive;  ///< released after the pages are unmapped, last of all
  file_descriptor owned;             ///< `descriptor`, if the mapping closes it
  int descriptor = -1;
  std::string path;  ///< for messages
  storage_kind kind = storage_kind::file;
  shale::access access = access::read_only;

  /// The record for write-back errors; null: the mapping makes its own record.
  std::shared_ptr<write_back_record> write_back;
};

class mapped_block : public storage_block {
 public:
  /// Maps `range` of the file, which may start at any byte. It can grow to `capacity_bytes`;
  /// growing extends the file too if the mapping is writable.
  mapped_block(mapping_source source, file_extent range, std::size_t capacity_bytes);

  /// Maps extents side by side; they must fit whole pages (see `lie_on_pages`). Grows by `append`
  /// only.
  mapped_block(mapping_source source, std::span<const file_extent> extents,
               std::size_t capacity_bytes);

  /// Whether the extents can be mapped side by side: each extent except the first either begins at
  /// a page boundary both in the file and in the map, or continues the previous extent in the file.
  static bool lie_on_pages(std::span<const file_extent> extents) noexcept;
  ~mapped_block() override;

  void grow(std::size_t from, std::size_t to) override;
  /// Maps more extents after the present end. Throws as the constructor; the block is unchanged
  /// then.
  void append(std::span<const file_extent> extents);
  /// Makes all pages read-only. Later stores are a segmentation fault. Throws io, out_of_memory.
  void make_read_only();
  /// Replaces the pages by private zeros and sets the mark. If that fails, the pages become
  /// read-only.
  void detach_from_file() noexcept;

  std::string_view path() const noexcept override { return source_.path; }
  std::optional<std::uint64_t> file_offset(std::size_t offset) const noexcept override;
  const backing_file* backing() const noexcept override { return &backing_; }
  file_extent extent_at(std::size_t offset) const noexcept override;
  void advise(access_pattern pattern, byte_range range) const noexcept override;
  void prefetch(byte_range range) const noexcept override;
  void populate(byte_range range, populate_for use) const override;
  void evict(byte_range range, eviction how) const noexcept override;
  void start_writeback(byte_range range) const noexcept override;
  void finish_writeback(byte_range range) const override;
  void flush(byte_range range, flush_mode mode) const override;
  std::size_t resident_bytes(byte_range range) const override;
  bool failed() const noexcept override {
    return mark_.failed.load(std::memory_order_acquire) || stores_were_lost();
  }
  void check() const override;

 protected:
  int descriptor() const noexcept { return source_.descriptor; }

 private:
  // An extent in the map. Extents that continue each other in the file are one part.
  struct part {
    std::size_t map_offset = 0;  // in the map; at a page boundary
    std::size_t bytes = 0;
    std::uint64_t file_offset = 0;
    guarded_range guard;
  };
  // A run of bytes inside one part.
  struct piece {
    std::byte* address;
    std::size_t bytes;
    std::uint64_t file_offset;
  };
  // The whole pages around a piece.
  struct page_run {
    std::byte* address;
    std::size_t bytes;
  };

  void remember_write_back_errors();
  void let_go_in_child() noexcept;
  void reserve(std::uint64_t first_offset, std::size_t bytes, std::size_t capacity_bytes);
  void add(file_extent extent);
  void extend(std::span<const file_extent> extents);
  void take_back(std::size_t parts, std::size_t last_bytes, std::size_t regions) noexcept;
  void map_pages(std::size_t position, std::size_t bytes, std::uint64_t file_offset);
  const part* part_at(std::size_t map_position) const noexcept;
  piece piece_at(std::size_t map_position, std::size_t last) const noexcept;
  template <class Visit>
  void for_each_piece(byte_range range, Visit visit) const;
  static page_run pages_of(const piece& bytes_inside) noexcept;
  bool stores_reach_the_file() const noexcept { return made_for_ == access::read_write; }

  // A mapping that was made read-only has been checksummed, synced and committed, so it ignores
  // later errors.
  bool stores_were_lost() const noexcept {
    return access() == access::read_write && source_.write_back->failed();
  }
  bool inherited_by_fork() const noexcept { return made_for_ != access::read_write; }
  bool belongs_to_parent() const noexcept;
  int protection() const noexcept;
  std::string place_in_file(std::uint64_t file_offset) const;  // for messages
  [[noreturn]] void throw_lost(std::uint64_t offset) const;
  [[noreturn]] void throw_shorter(std::uint64_t offset, const std::string& sizes) const;
  void report_unwritten(const piece& unwritten, int failure) const noexcept;
  [[noreturn]] void throw_unwritten(const piece& unwritten, int failure) const;
  void check_mark() const;
  [[noreturn]] void throw_unpopulated(page_run pages, std::uint64_t file_offset, populate_for use,
                                      int failure) const;

  mapping_source source_;
  const backing_file backing_;
  const shale::access made_for_;
  const bool extents_;  // made from extents: no growth by bytes
  const unsigned generation_ = fork_generation();
  std::uint64_t first_offset_ = 0;  // in the file; only for a range
  std::size_t skew_ = 0;
  fault_mark mark_;
  std::atomic<bool> detached_ = false;

  fork_safe_mutex growing_;  // one growth at a time
  // Guards parts_ and regions_. A growth that fails removes the parts that it added.
  mutable fork_safe_mutex layout_;

  // Destroyed from the last to the first: guards, pages, addresses.
  address_reservation reserved_;
  std::vector<boost::interprocess::mapped_region> regions_;
  std::vector<part> parts_;
  std::atomic<std::uint64_t> needed_file_bytes_ = 0;  // the end of the last mapped byte in the file
};

/// The owner of `handle` if it is a mapping, else null.
mapped_block* mapped_owner(const storage& handle) noexcept;

}  // namespace shale::detail
