// The base class of the owners of a storage's bytes, with one derived class for each kind of
// memory. An owner knows the address of its bytes, whether they may be written, and how to page,
// flush and check them. Handles (`storage`) share it.
//
// The virtual functions take ranges of positions in the owner. These ranges lie inside it and are
// never empty, because the handle has clamped them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "shale/storage.hpp"
#include "storage/blocks/backing.hpp"

namespace shale::detail {

class segment_checksums;

class storage_block {
 public:
  virtual ~storage_block() = default;
  storage_block(const storage_block&) = delete;
  storage_block& operator=(const storage_block&) = delete;

  storage_kind kind() const noexcept { return kind_; }
  shale::access access() const noexcept { return access_.load(std::memory_order_relaxed); }
  std::byte* address() const noexcept { return address_; }
  std::size_t size_bytes() const noexcept { return bytes_.load(std::memory_order_acquire); }
  std::size_t capacity_bytes() const noexcept { return capacity_bytes_; }

  std::uint64_t version() const noexcept { return version_.load(std::memory_order_acquire); }
  void bump_version() noexcept { version_.fetch_add(1, std::memory_order_acq_rel); }

  /// Grows to `to` bytes, at most the capacity; `from` must be the present size.
  virtual void grow(std::size_t from, std::size_t to);

  // Mapped owners override these; the defaults are for memory.
  virtual std::string_view path() const noexcept { return {}; }
  virtual std::optional<std::uint64_t> file_offset(std::size_t) const noexcept { return {}; }
  virtual const backing_file* backing() const noexcept { return nullptr; }  // null: no file
  virtual file_extent extent_at(std::size_t) const noexcept { return {}; }  // needs a backing
  virtual void advise(access_pattern, byte_range) const noexcept {}
  virtual void prefetch(byte_range) const noexcept {}
  virtual void populate(byte_range, populate_for) const {}
  virtual void evict(byte_range, eviction) const noexcept {}
  virtual void start_writeback(byte_range) const noexcept {}
  virtual void finish_writeback(byte_range) const {}
  virtual void flush(byte_range, flush_mode) const {}
  virtual std::size_t resident_bytes(byte_range range) const { return range.bytes; }
  virtual bool read_file(std::size_t, std::span<std::byte>) const noexcept { return false; }
  virtual bool write_file(std::size_t, std::span<const std::byte>) { return false; }
  virtual bool failed() const noexcept { return false; }
  virtual void check() const {}

  /// Checksums that are stored with the bytes, or null.
  segment_checksums* checksums() const noexcept { return checksums_.get(); }

  /// Sets the checksums; called once, before the block has a second handle.
  void set_checksums(std::shared_ptr<segment_checksums> checksums) noexcept {
    checksums_ = std::move(checksums);
  }

  /// A handle to all of `block`.
  static storage handle(std::shared_ptr<storage_block> block) noexcept;

  /// Moves the end of `handle` to the end of its owner.
  static void reach_end(storage& handle) noexcept;

  /// The owner of `handle`, or null.
  static storage_block* of(const storage& handle) noexcept { return handle.block_.get(); }

 protected:
  storage_block(storage_kind kind, shale::access allowed) noexcept
      : kind_(kind), access_(allowed) {}

  /// Called once by the derived constructor; from then on the address is fixed.
  void place(std::byte* address, std::size_t bytes, std::size_t capacity_bytes) noexcept {
    address_ = address;
    bytes_.store(bytes, std::memory_order_release);
    capacity_bytes_ = capacity_bytes;
  }

  void set_size(std::size_t bytes) noexcept { bytes_.store(bytes, std::memory_order_release); }
  void set_access(shale::access allowed) noexcept {
    access_.store(allowed, std::memory_order_relaxed);
  }

 private:
  const storage_kind kind_;
  std::atomic<shale::access> access_;
  std::byte* address_ = nullptr;
  std::atomic<std::size_t> bytes_ = 0;
  std::size_t capacity_bytes_ = 0;
  std::atomic<std::uint64_t> version_ = 0;
  std::shared_ptr<segment_checksums> checksums_;
};

}  // namespace shale::detail
