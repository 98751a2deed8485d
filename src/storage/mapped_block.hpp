// Owners of mapped bytes: parts of one open file side by side in one reservation of addresses.
//
// Invariants
//   mapped.1  positions: byte p of the owner is byte `skew + p` of the map, and the map begins on a
//             page; the parts tile the map from 0 on without gaps
//   mapped.2  every mapped page is guarded before it is mapped and until it is unmapped
//   mapped.3  the descriptor is ours or kept open by `keep_alive`, is never reopened by name, and
//             is the one the pages come from; `keep_alive` goes last
#pragma once

#include <atomic>
#include <boost/interprocess/mapped_region.hpp>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "storage/address_reservation.hpp"
#include "storage/fault_guard.hpp"
#include "storage/file_descriptor.hpp"
#include "storage/file_extent.hpp"
#include "storage/storage_block.hpp"

namespace shale::detail {

/// The file that a mapping is made from.
struct mapping_source {
  std::shared_ptr<void> keep_alive;  ///< goes when the pages are unmapped, after all else
  file_descriptor owned;             ///< `descriptor`, if the mapping is to close it
  int descriptor = -1;
  std::string path;  ///< for messages
  storage_kind kind = storage_kind::file;
  shale::access access = access::read_only;
};

class mapped_block : public storage_block {
 public:
  /// One stretch of the file that starts anywhere and can grow to `capacity_bytes`, taking the file
  /// with it where that is writable.
  mapped_block(mapping_source source, file_extent stretch, std::size_t capacity_bytes);

  /// Extents side by side. Grows by `append` only.
  mapped_block(mapping_source source, std::span<const file_extent> extents,
               std::size_t capacity_bytes);
  ~mapped_block() override;

  void grow(std::size_t from, std::size_t to) override;
  void append(std::span<const file_extent> extents);
  void make_read_only();
  void abandon() noexcept;

  std::string_view path() const noexcept override { return source_.path; }
  std::optional<std::uint64_t> file_offset(std::size_t at) const noexcept override;
  void advise(access_pattern pattern, byte_range range) const noexcept override;
  void prefetch(byte_range range) const noexcept override;
  void populate(byte_range range, populate_for use) const override;
  void evict(byte_range range, eviction how) const noexcept override;
  void start_writeback(byte_range range) const noexcept override;
  void finish_writeback(byte_range range) const override;
  void flush(byte_range range, flush_mode mode) const override;
  std::size_t resident_bytes(byte_range range) const override;
  bool failed() const noexcept override { return mark_.failed.load(std::memory_order_acquire); }
  void check() const override;

 protected:
  int descriptor() const noexcept { return source_.descriptor; }

 private:
  // An extent in the map. Where one continues its predecessor in the file, they are one part.
  struct part {
    std::size_t at = 0;  // in the map; on a page
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

  void reserve(std::uint64_t first_offset, std::size_t bytes, std::size_t capacity_bytes);
  void add(file_extent extent);
  void extend(std::span<const file_extent> extents);
  void take_back(std::size_t parts, std::size_t last_bytes, std::size_t regions) noexcept;
  void map_pages(std::size_t at, std::size_t bytes, std::uint64_t file_offset);
  const part* part_at(std::size_t map_position) const noexcept;
  piece piece_at(std::size_t map_position, std::size_t last) const noexcept;
  template <class Visit>
  void for_each_piece(byte_range range, Visit visit) const;
  static page_run pages_of(const piece& where) noexcept;
  bool stores_reach_the_file() const noexcept { return made_for_ == access::read_write; }
  bool inherited_by_fork() const noexcept { return made_for_ != access::read_write; }
  bool belongs_to_parent() const noexcept;
  int protection() const noexcept;
  std::string place_in_file(std::uint64_t file_offset) const;  // for messages
  [[noreturn]] void throw_lost(std::uint64_t at) const;
  [[noreturn]] void throw_unwritten(const piece& which, int failure) const;
  void check_mark() const;
  [[noreturn]] void throw_unpopulated(page_run pages, std::uint64_t file_offset, populate_for use,
                                      int failure) const;

  mapping_source source_;
  const shale::access made_for_;
  const bool extents_;  // made from extents: no growth by bytes
  const unsigned generation_ = fork_generation();
  std::uint64_t first_offset_ = 0;  // in the file; only of a stretch
  std::size_t skew_ = 0;
  fault_mark mark_;
  std::atomic<bool> abandoned_ = false;

  std::mutex growing_;         // one growth at a time
  mutable std::mutex layout_;  // guards parts_, which only ever grow

  // Goes from below upwards: guards, pages, addresses.
  address_reservation reserved_;
  std::vector<boost::interprocess::mapped_region> regions_;
  std::vector<part> parts_;
  std::atomic<std::uint64_t> needed_file_bytes_ = 0;  // where the last mapped byte of the file ends
};

/// The owner of `handle` if it is mapped, or null.
mapped_block* mapped_owner(const storage& handle) noexcept;

}  // namespace shale::detail
