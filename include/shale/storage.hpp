// Reference-counted handles to untyped bytes: pool blocks, mapped files, shared memory and adopted
// buffers. A storage knows no dtype and no shape.
//
// Invariants
//   storage.1  the address and the owner of the bytes never change; the size only grows, and new
//              bytes lie after the old ones
//   storage.2  a slice keeps its parent alive
//   storage.3  if a mapped range loses its file, loads return zeros, stores are discarded, and the
//              storage is marked failed; no signal reaches the program (see `check`)
//   storage.4  destructors never throw and report nothing; `flush` reports
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "shale/access.hpp"
#include "shale/error.hpp"
#include "shale/index.hpp"

namespace [[gnu::visibility("default")]] shale {

class memory_pool;

namespace detail {
class storage_block;  // the owner of a storage's bytes: src/storage/blocks/storage_block.hpp
}

/// A reference-counted handle to bytes. Copies share the bytes; the last handle releases them. A
/// handle is like a pointer: the bytes can be written through a const one, if it is writable().
/// Threads  copies may be used in different threads, like copies of a shared_ptr. The caller
///          synchronises loads and stores of the bytes
/// Lifetime the bytes live as long as a handle, a slice or a tensor over them
class storage {
 public:
  /// A storage without bytes and without an owner: data() is null and size_bytes() is 0. A storage
  /// that was moved from is in the same state.
  storage() = default;
  storage(const storage&) = default;
  storage& operator=(const storage&) = default;
  storage(storage&& other) noexcept;
  storage& operator=(storage&& other) noexcept;

  /// Takes `bytes` uninitialised bytes from `pool` (null: the default pool), aligned to 64 bytes. A
  /// storage of 0 bytes is valid and has a null address. If `reserve_bytes` is larger than `bytes`,
  /// the storage can grow that far; the reserve takes address space, and counts for the pool's
  /// limit.
  /// Cost     that of memory_pool::allocate
  /// Throws   out_of_memory
  /// Threads  safe. The last handle may be destroyed in another thread
  /// Lifetime the pool must outlive the bytes. They go back to it with the last handle
  static storage allocate(std::size_t bytes, memory_pool* pool = nullptr,
                          std::size_t reserve_bytes = 0);

  /// A storage over bytes of the caller. `deleter(pointer)` is called once, by the thread that
  /// destroys the last handle, without a lock. Its exceptions are ignored. A `deleter` of nullptr
  /// borrows the bytes: the caller keeps them alive.
  /// Throws   invalid_argument (`pointer` is null and `bytes` is not 0; `deleter` is a null pointer
  ///          or an empty function object): the bytes stay the caller's.
  ///          out_of_memory: `deleter` has been called
  /// Lifetime objects that the deleter uses must live until it has been called
  template <class Deleter>
  static storage adopt(void* pointer, std::size_t bytes, Deleter deleter,
                       access allowed = access::read_write) {
    require_adoptable(pointer, bytes, allowed);
    detail::require_callable(deleter);
    auto quiet = [deleter = std::move(deleter)](void* adopted) mutable {
      try {
        deleter(adopted);
      } catch (...) {
      }
    };
    try {
      return adopt_owner(pointer, bytes, {pointer, std::move(quiet)}, allowed);
    } catch (const std::bad_alloc&) {
      detail::throw_out_of_memory();
    }
  }
  static storage adopt(void* pointer, std::size_t bytes, std::nullptr_t,
                       access allowed = access::read_write) {
    return adopt_owner(pointer, bytes, nullptr, allowed);
  }

  /// A storage over bytes that `owner` keeps alive. A null `owner` borrows them.
  /// Throws   invalid_argument (`pointer` is null and `bytes` is not 0), out_of_memory
  static storage adopt_owner(void* pointer, std::size_t bytes, std::shared_ptr<void> owner,
                             access allowed = access::read_write);

  /// `bytes` bytes from `offset` on. The slice shares the owner, its version and its fault mark.
  /// Throws   invalid_argument unless the range lies inside
  storage slice(std::size_t offset, std::size_t bytes) const;

  /// A handle to the same bytes that is not writable, like its slices. Never throws.
  storage as_read_only() const;

  /// The address of the first byte, or null if there is none. This checks nothing; `check` finds
  /// out whether the bytes were lost.
  std::byte* data() const noexcept { return bytes_ == 0 ? nullptr : data_; }

  /// The number of bytes of this handle; its owner may have more. The conversion to `bool` tells
  /// whether there is an owner. A storage of 0 bytes may have one.
  std::size_t size_bytes() const noexcept { return bytes_; }
  bool empty() const noexcept { return bytes_ == 0; }
  explicit operator bool() const noexcept { return block_ != nullptr; }

  /// The kind of owner; `heap` if there is none.
  storage_kind kind() const noexcept;

  /// How this handle may be used. If a mapping becomes read-only, as a commit does, all its handles
  /// change.
  shale::access access() const noexcept;
  bool writable() const noexcept { return access() != shale::access::read_only; }

  /// The number of handles and slices that share the owner.
  index_t use_count() const noexcept { return block_.use_count(); }

  /// Whether both have the same owner, so that their bytes may overlap. Two mappings of one file
  /// have different owners and may overlap too, which the engine finds out (docs/caveats.md).
  bool shares_owner_with(const storage& other) const noexcept {
    return block_ != nullptr && block_ == other.block_;
  }

  /// The offset of data() from the first byte of the owner.
  std::size_t owner_offset() const noexcept;

  /// The number of finished writes by the engine and by `set` through any handle of this owner. A
  /// call that throws may have stored elements without counting.
  std::uint64_t version() const noexcept;

  /// Adds 1 to the version. Call it after stores of your own.
  void bump_version() const noexcept;

  /// Makes this handle and its owner larger, to `bytes`. Address and old bytes stay. New bytes of a
  /// file are zero, new bytes of a heap storage are uninitialised. Only a storage that was made
  /// with a reserve can grow, and only through a handle that ends where the owner ends. Other
  /// handles keep their bounds.
  /// Cost     O(1) for heap bytes; for a file, the time to reserve its space
  /// Throws   invalid_argument (smaller than now, beyond capacity_bytes(), a handle that ends
  ///          earlier, no owner, a read-only mapping of a file that is too short), access_denied (a
  ///          handle from `as_read_only` to writable bytes), out_of_space, out_of_memory, io (also
  ///          if bytes were lost), unsupported (in a forked child)
  /// Threads  calls on one owner take turns. Other threads may use the old bytes meanwhile
  void grow(std::size_t bytes);

  /// The largest size that `grow` can reach; the present size if this handle ends before its owner.
  std::size_t capacity_bytes() const noexcept;

  // ---- mapped storages --------------------------------------------------------------------------
  // On heap and adopted bytes these functions do nothing. A range may reach beyond the storage;
  // only the part inside counts.

  /// The path of the file or segment when it was opened, for messages. Empty for other storages.
  std::string_view path() const noexcept;

  /// The offset in the file of the byte at data(). Nothing for heap and adopted bytes.
  std::optional<std::uint64_t> file_offset() const noexcept;

  /// Tells the kernel how the range will be read.
  void advise(access_pattern pattern, byte_range range) const noexcept;

  /// Starts reading the range into memory and returns at once.
  void prefetch(byte_range range) const noexcept;

  /// Makes the range resident, so that loads (or also stores) cannot fault. Populating for loads
  /// makes no page dirty.
  /// Cost     reading what is not in memory yet
  /// Throws   io, naming file and offset (the device cannot read, or the file was truncated);
  ///          out_of_memory; for stores also access_denied (not writable) and out_of_space (a
  ///          sparse file on a full device); unsupported (in a forked child)
  void populate(byte_range range, populate_for use = populate_for::load) const;

  /// Removes the range from the resident memory of this process. Later loads bring it back. The
  /// range is rounded outwards to whole pages. Copy-on-write pages are written to swap space, never
  /// lost. With `eviction::system` clean pages also leave the page cache, which other processes
  /// share; there the range is rounded inwards.
  void evict(byte_range range, eviction scope = eviction::process) const noexcept;

  /// Starts writing the dirty pages of the range to the device. Later calls throw its failures.
  void start_writeback(byte_range range) const noexcept;

  /// Waits for writes that start_writeback began. It makes nothing durable; `flush` does.
  /// Throws   as `flush`
  void finish_writeback(byte_range range) const;

  /// Writes the range to the file. Does nothing for read-only and copy-on-write storages.
  /// Cost     the writing; with flush_mode::sync, also waiting for the device
  /// Throws   io, out_of_space: stored bytes may be lost, and from then on every writable storage
  ///          of the file that is open in this process throws. Destroy these storages, then map the
  ///          file again and store the bytes again. io (bytes were lost, see `check`), unsupported
  ///          (in a forked child)
  void flush(byte_range range, flush_mode mode = flush_mode::sync) const;
  void flush(flush_mode mode = flush_mode::sync) const { flush({0, bytes_}, mode); }

  /// Whether the file has checksums of the bytes, as that of a dense array in a container.
  bool has_checksums() const noexcept;

  /// Compares the range with its checksums, if it has any, in whole segments of 1 MiB.
  /// Cost     reads each segment once while the process has the file open; again if 1,024 other
  ///          arrays were compared since
  /// Throws   corrupt (naming array, segment and byte), io, out_of_memory
  void compare_checksums(byte_range range) const;
  void compare_checksums() const { compare_checksums({0, bytes_}); }

  /// The number of bytes of the range that are in the page cache now. If the kernel does not tell,
  /// for example a user who may not ask, all bytes count. All heap and adopted bytes count.
  /// Cost     one system call for each 256 MiB
  /// Throws   unsupported (a child process without handlers of fork), std::bad_alloc
  std::size_t resident_bytes(byte_range range) const;
  std::size_t resident_bytes() const { return resident_bytes({0, bytes_}); }

  /// Whether bytes were lost in a fault (storage.3), stores could not be written to the device, or
  /// this process was forked and the writable mapping is the parent's. Cost: a few atomic loads.
  bool failed() const noexcept;

  /// Checks that no byte was lost.
  /// Cost     one system call
  /// Throws   io, naming file and offset (failed(), or the file is shorter than the mapping);
  ///          unsupported (in a forked child, for a writable mapping of the parent)
  void check() const;

 private:
  friend class detail::storage_block;

  static void require_adoptable(const void* pointer, std::size_t bytes, shale::access allowed);

  storage(std::shared_ptr<detail::storage_block> block, std::byte* data, std::size_t bytes) noexcept
      : block_(std::move(block)), data_(data), bytes_(bytes) {}

  byte_range in_owner(byte_range range) const noexcept;  // clamped to this storage

  std::shared_ptr<detail::storage_block> block_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  bool read_only_ = false;
};

}  // namespace shale
