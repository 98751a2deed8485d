// Untyped bytes with one owner and a lifetime: pool blocks, mapped files, shared memory, adopted
// buffers. Knows no dtype and no shape.
//
// Invariants
//   storage.1  the address and the owner of the bytes never change; the size only grows, and grown
//              bytes lie behind the old ones
//   storage.2  a slice keeps its parent alive
//   storage.3  a mapped range that lost its file reads as zeros, keeps nothing that is stored into
//              it for the file, and is marked failed; it never raises a signal (see `check`)
//   storage.4  destructors never throw and never report; `flush` does
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "shale/error.hpp"
#include "shale/index.hpp"

namespace [[gnu::visibility("default")]] shale {

class memory_pool;

namespace detail {
class storage_block;  // the owner behind a storage: src/storage/storage_block.hpp
}

/// What may be done with the bytes.
enum class access : std::uint8_t {
  read_only,      ///< stores are refused by the hardware
  read_write,     ///< stores reach the file or the other processes
  copy_on_write,  ///< stores stay in this process; the file keeps its bytes
};

/// A hint about how a range will be read.
enum class access_pattern : std::uint8_t { normal, sequential, random };

/// How `flush` ends: when the bytes are on the device, or as soon as writing has been started.
enum class flush_mode : std::uint8_t { sync, async };

/// What populated memory is wanted for.
enum class populate_for : std::uint8_t { load, store };

/// How far `evict` goes: out of this process, or out of the page cache as well.
enum class eviction : std::uint8_t { process, system };

/// What owns the bytes of a storage.
enum class storage_kind : std::uint8_t { heap, file, shared_memory, adopted };

/// A range of bytes inside a storage.
struct byte_range {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

/// A handle to bytes, counted: copies share them, the last one lets them go.
/// Threads  the handle is a value, like shared_ptr: copies may be used from different threads; who
///          writes the bytes is the caller's affair
/// Lifetime the bytes live as long as any handle, slice or tensor over them
class storage {
 public:
  /// No bytes: data() is null, size_bytes() is 0.
  storage() = default;

  /// `bytes` fresh bytes from `pool` (null: the process's default pool), 64-byte aligned,
  /// uninitialised. 0 bytes is a valid storage with a null address. With `reserve_bytes` above
  /// `bytes` the storage can grow that far; untouched reserve costs address space and counts
  /// against the pool's limit.
  /// Cost     see memory_pool
  /// Throws   out_of_memory
  static storage allocate(std::size_t bytes, memory_pool* pool = nullptr,
                          std::size_t reserve_bytes = 0);

  /// Takes bytes that somebody else made; `deleter(pointer)` runs once, when the last handle goes.
  /// A null `deleter` borrows: the caller keeps the bytes alive.
  template <class Deleter>
  static storage adopt(void* pointer, std::size_t bytes, Deleter deleter,
                       access allowed = access::read_write) {
    return adopt_owner(pointer, bytes, std::shared_ptr<void>(pointer, std::move(deleter)), allowed);
  }
  static storage adopt(void* pointer, std::size_t bytes, std::nullptr_t,
                       access allowed = access::read_write) {
    return adopt_owner(pointer, bytes, nullptr, allowed);
  }

  /// The same, kept alive by `owner`.
  static storage adopt_owner(void* pointer, std::size_t bytes, std::shared_ptr<void> owner,
                             access allowed = access::read_write);

  /// `bytes` bytes from `offset` on, sharing the owner, version and fault mark.
  /// Throws   invalid_argument unless the range lies inside
  storage slice(std::size_t offset, std::size_t bytes) const;

  /// The same bytes through a handle that refuses writing, as do its slices.
  storage as_read_only() const;

  /// The first byte; null when empty. Not checked: `check` says whether the bytes are still there.
  std::byte* data() noexcept { return bytes_ == 0 ? nullptr : data_; }
  const std::byte* data() const noexcept { return bytes_ == 0 ? nullptr : data_; }

  /// Bytes that this handle shows, which its owner may have more of. A storage of 0 bytes may still
  /// have an owner, and is true then.
  std::size_t size_bytes() const noexcept { return bytes_; }
  bool empty() const noexcept { return bytes_ == 0; }
  explicit operator bool() const noexcept { return block_ != nullptr; }

  /// `heap` for a storage without an owner.
  storage_kind kind() const noexcept;

  /// What this handle may do; a mapping that was made read-only says so through every handle.
  shale::access access() const noexcept;
  bool writable() const noexcept { return access() != shale::access::read_only; }

  /// Handles and slices that share the owner.
  index_t use_count() const noexcept { return block_.use_count(); }

  /// Whether both have the same owner, so that their bytes may overlap.
  bool shares_owner_with(const storage& other) const noexcept {
    return block_ != nullptr && block_ == other.block_;
  }

  /// Where in its owner this storage begins; for a file, `file_offset` of the owner + this is the
  /// byte in the file.
  std::size_t owner_offset() const noexcept;

  /// Counts the engine's writes through any handle of this owner: equal numbers mean unchanged.
  std::uint64_t version() const noexcept;

  /// For whoever writes the bytes by other means.
  void bump_version() noexcept;

  /// Grows the owner to `bytes`: the address stays, old bytes stay, new file bytes are zero, new
  /// heap bytes uninitialised. Only storages that were made with a larger reservation can grow, and
  /// only through a handle that reaches the owner's end. Other handles keep their bounds.
  /// Throws   invalid_argument (shrinking, no reservation), access_denied (`as_read_only` of what
  ///          can be written), out_of_space, out_of_memory, io
  void grow(std::size_t bytes);

  /// Bytes `grow` can reach.
  std::size_t capacity_bytes() const noexcept;

  // ---- mapped storages; no-ops (or the obvious constant) on heap and adopted bytes --------------

  /// The path a file or shared segment was opened by; empty for others. For messages only.
  std::string_view path() const noexcept;

  /// The byte of the file at data(); nothing unless kind() is file or shared_memory.
  std::optional<std::uint64_t> file_offset() const noexcept;

  /// Tells the kernel how the range will be used. `offset + bytes` may exceed the storage: clamped.
  void advise(access_pattern pattern, byte_range range) const noexcept;

  /// Starts reading the range into memory and returns at once.
  void prefetch(byte_range range) const noexcept;

  /// Brings the range into memory, mapped, so that touching it cannot fault: for loads, or for
  /// stores too. Populating for loads dirties nothing, also in a writable mapping.
  /// Throws   io naming file and offset if the device or a truncation took the bytes away;
  ///          access_denied for stores into a read-only storage
  void populate(byte_range range, populate_for use = populate_for::load) const;

  /// Takes the range out of this process's resident memory; later touches bring it back. Rounded
  /// outwards to whole pages: neighbours that share one merely fault again. Copy-on-write pages are
  /// paged out, never lost. With `eviction::system` the file's clean pages leave the page cache
  /// too, which other processes may feel; rounded inwards there.
  void evict(byte_range range, eviction how = eviction::process) const noexcept;

  /// Starts writing the range's dirty pages to the device and returns.
  void start_writeback(byte_range range) const noexcept;

  /// Waits for what start_writeback began. Durability needs `flush`.
  /// Throws   io, out_of_space; a failure is final: do not try again
  void finish_writeback(byte_range range) const;

  /// Writes the range to the file.
  /// Throws   io; a no-op for read-only and copy-on-write storages
  void flush(byte_range range, flush_mode mode = flush_mode::sync) const;
  void flush(flush_mode mode = flush_mode::sync) const { flush({0, bytes_}, mode); }

  /// Bytes of the range that are in memory right now: for files, in the page cache, as far as this
  /// user may know it (else all of them).
  std::size_t resident_bytes(byte_range range) const;
  std::size_t resident_bytes() const { return resident_bytes({0, bytes_}); }

  /// Whether a fault took bytes of this storage away (storage.3). Cheap: one atomic load.
  bool failed() const noexcept;

  /// Throws   io naming file and offset if failed(), or if the file has since become shorter than
  ///          the mapping
  void check() const;

 private:
  friend class detail::storage_block;
  storage(std::shared_ptr<detail::storage_block> block, std::byte* data, std::size_t bytes) noexcept
      : block_(std::move(block)), data_(data), bytes_(bytes) {}

  byte_range in_owner(byte_range range) const noexcept;  // clamped to this storage

  std::shared_ptr<detail::storage_block> block_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  bool read_only_ = false;
};

}  // namespace shale
