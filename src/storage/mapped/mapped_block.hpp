// Owns bytes that are mapped from one open file, as parts side by side (mapped_parts.hpp), and
// pages, flushes and checks them.
//
// Invariants
//   mapped.3  the pages are mapped from the descriptor itself, never from a file that was reopened
//             by name; the block owns the descriptor or `keep_alive` keeps it open; `keep_alive` is
//             released last
//   mapped.4  a write-back error that one call received is thrown by every later call that brings
//             bytes in, checks or flushes, while the mapping is writable
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "storage/blocks/file_extent.hpp"
#include "storage/blocks/storage_block.hpp"
#include "storage/faults/fault_guard.hpp"
#include "storage/mapped/mapped_parts.hpp"
#include "storage/system/fork_handlers.hpp"
#include "storage/system/fork_safe_mutex.hpp"

namespace shale::detail {

class mapped_block : public storage_block {
 public:
  /// Maps `range` of the file, which may start at any byte. It can grow to `capacity_bytes`;
  /// growing extends the file too if the mapping is writable.
  mapped_block(mapping_source source, file_extent range, std::size_t capacity_bytes);

  /// Maps extents side by side; they must fit whole pages (`mapped_parts::lie_on_pages`). Grows by
  /// `append` only.
  mapped_block(mapping_source source, std::span<const file_extent> extents,
               std::size_t capacity_bytes);

  ~mapped_block() override;

  void grow(std::size_t from, std::size_t to) override;
  /// Maps more extents after the present end. Throws as the constructor; the block is unchanged
  /// then.
  void append(std::span<const file_extent> extents);
  /// Makes all pages read-only. Later stores are a segmentation fault. Throws io, out_of_memory.
  void make_read_only();
  /// Lets children that are forked later use the mapping, if it is read-only.
  void let_children_inherit() noexcept;
  /// Replaces the pages by private zeros and sets the mark. If that fails, the pages become
  /// read-only.
  void detach_from_file() noexcept;

  std::string_view path() const noexcept override { return source_.path; }
  std::optional<std::uint64_t> file_offset(std::size_t offset) const noexcept override {
    return parts_.file_offset(offset);
  }
  const backing_file* backing() const noexcept override { return &backing_; }
  file_extent extent_at(std::size_t offset) const noexcept override {
    return parts_.extent_at(offset);
  }
  void advise(access_pattern pattern, byte_range range) const noexcept override;
  void prefetch(byte_range range) const noexcept override;
  void populate(byte_range range, populate_for use) const override;
  void evict(byte_range range, eviction scope) const noexcept override;
  void start_writeback(byte_range range) const noexcept override;
  void finish_writeback(byte_range range) const override;
  void flush(byte_range range, flush_mode mode) const override;
  std::size_t resident_bytes(byte_range range) const override;
  bool read_file(std::size_t offset, std::span<std::byte> into) const noexcept override;
  bool write_file(std::size_t offset, std::span<const std::byte> from) override;
  bool failed() const noexcept override {
    return mark_.failed.load(std::memory_order_acquire) || stores_were_lost();
  }
  void check() const override;

 protected:
  int descriptor() const noexcept { return source_.descriptor; }

 private:
  // The unit of growth: any number of bytes of one range of the file, or whole extents.
  enum class growth : std::uint8_t { by_bytes, by_extents };

  // The whole pages around a piece.
  struct page_run {
    std::byte* address;
    std::size_t bytes;
  };

  mapped_block(mapping_source source, growth unit, std::span<const file_extent> extents,
               std::size_t capacity_bytes);
  void remember_write_back_errors();
  void extend(std::span<const file_extent> extents);
  void require_growth(std::size_t from, std::size_t to) const;
  void reserve_in_file(std::size_t bytes) const;
  static page_run pages_of(const mapped_piece& bytes_inside) noexcept;
  bool stores_reach_the_file() const noexcept { return source_.access == access::read_write; }

  // A mapping that was made read-only has been checksummed, synced and committed, so it ignores
  // later errors.
  bool stores_were_lost() const noexcept {
    return access() == access::read_write && source_.write_back->failed();
  }
  bool belongs_to_parent() const noexcept;
  bool file_shows_the_bytes() const noexcept;
  std::optional<std::uint64_t> size_of_own_file() const noexcept;
  bool write_piece(const mapped_piece& piece, const std::byte* from);
  [[noreturn]] void throw_lost(std::uint64_t offset) const;
  [[noreturn]] void throw_unmapped(std::uint64_t offset) const;
  [[noreturn]] void throw_shorter(std::uint64_t offset, const std::string& sizes) const;
  void require_mapped_bytes(std::uint64_t needed, std::uint64_t present) const;
  void refresh_last_page(const file_extent& more) const;
  void report_unwritten(const mapped_piece& unwritten, int failure) const noexcept;
  [[noreturn]] void throw_without_space(std::uint64_t offset, int failure) const;
  [[noreturn]] void throw_unwritten(const mapped_piece& unwritten, int failure) const;
  void check_mark() const;
  void ask_for_write_back_errors() const;
  [[noreturn]] void throw_unpopulated(page_run pages, std::uint64_t file_offset, populate_for use,
                                      int failure) const;

  mapping_source source_;
  const backing_file backing_;
  const growth growth_;
  const owning_process mapped_by_;
  const std::uint64_t first_offset_;  // in the file
  fault_mark mark_;
  std::atomic<bool> detached_ = false;
  fork_safe_mutex changing_;  // one change of the mapping, or one `write_file`, at a time
  mapped_parts parts_;
};

/// The owner of `handle` if it is a mapping, else null.
mapped_block* mapped_owner(const storage& handle) noexcept;

}  // namespace shale::detail
