// An allocator for tensor temporaries that caches freed memory.
//
// Invariants
//   pool.1  live + cached = mapped: every byte from the system is one or the other
//   pool.2  blocks are aligned to 64 bytes, and live blocks never overlap
//   pool.3  an allocation that would exceed the limit throws and changes nothing
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <new>
#include <type_traits>
#include <utility>

namespace [[gnu::visibility("default")]] shale {

namespace detail {
class pool_state;  // src/storage/pool/pools/pool_state.hpp
}

/// Options of a pool.
struct pool_options {
  /// The most bytes, live and cached, that the pool may hold; 0 means no limit.
  std::size_t limit_bytes = 0;
};

/// The state of a pool, and counters since its construction.
struct pool_statistics {
  std::size_t live_bytes = 0;   ///< in allocated blocks, each rounded up to a block size
  std::size_t live_blocks = 0;  ///< allocated blocks
  /// The highest live_bytes since construction or reset_peak, to within 4 MiB and a block per
  /// thread.
  std::size_t peak_live_bytes = 0;
  std::size_t cached_bytes = 0;        ///< mapped, but not live
  std::size_t idle_bytes = 0;          ///< the part of cached_bytes that was not yet given back
  std::size_t mapped_bytes = 0;        ///< that the pool has from the system: live and cached
  std::size_t reserved_bytes = 0;      ///< set aside by `reserve`; they count for the limit too
  std::size_t largest_free_bytes = 0;  ///< of one free block
  std::uint64_t hits = 0;              ///< allocations of 32 KiB and more that the cache served
  std::uint64_t misses = 0;            ///< allocations that needed new memory from the system
  std::uint64_t splits = 0;            ///< free blocks of which an allocation left a part
  std::uint64_t coalesces = 0;         ///< free blocks that were joined with a free neighbour
};

/// A pool of memory blocks, and a std::pmr memory resource. The system allocator serves requests
/// below 32 KiB. Larger blocks come from segments of 64 MiB on huge pages. Each thread caches some
/// blocks of up to 1 MiB, in 21 sizes, and the block of up to 64 MiB that it freed last. A block
/// above 256 MiB has a mapping of its own. Idle memory goes back to the system after some seconds,
/// and under memory pressure (docs/storage.md).
/// Throws   `allocate` throws out_of_memory (an `error`, not std::bad_alloc)
/// Threads  safe. A thread may free blocks of another one
/// Lifetime the pool must outlive its blocks. The default pool is never destroyed
class memory_pool final : public std::pmr::memory_resource {
 public:
  /// An empty pool. It takes memory for blocks when the first one is allocated.
  /// Throws   out_of_memory
  explicit memory_pool(const pool_options& options = {});
  ~memory_pool() override;
  memory_pool(const memory_pool&) = delete;
  memory_pool& operator=(const memory_pool&) = delete;

  /// The pool of the process. It is made at program start and never destroyed.
  /// Throws   std::bad_alloc, if there was not enough memory at program start and there still is
  ///          not
  static memory_pool& default_pool();

  /// The present state. A block that another thread allocates or frees meanwhile may be missing.
  /// Cost     a system call that interrupts the running threads of the process for a microsecond
  /// Throws   nothing
  pool_statistics statistics() const;

  /// Sets peak_live_bytes to live_bytes.
  void reset_peak() noexcept;

  /// Gives all idle memory back to the system, including the caches of other threads. Returns how
  /// many bytes were unmapped. Cached bytes that remain mapped take no memory then.
  std::size_t trim() noexcept;

  /// A part of the limit for memory that does not belong to the pool, such as pages of mapped
  /// files. It is given back on destruction. A reservation can be moved; it must not outlive the
  /// pool.
  class reservation {
   public:
    reservation() = default;
    reservation(reservation&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    reservation& operator=(reservation&& other) noexcept {
      reservation moved(std::move(other));
      std::swap(pool_, moved.pool_);
      std::swap(bytes_, moved.bytes_);
      return *this;
    }
    ~reservation();

    /// The bytes that are set aside: those requested, or fewer if there was less room.
    std::size_t bytes() const noexcept { return bytes_; }

   private:
    friend memory_pool;
    reservation(memory_pool& pool, std::size_t bytes) noexcept : pool_(&pool), bytes_(bytes) {}

    memory_pool* pool_ = nullptr;
    std::size_t bytes_ = 0;
  };

  /// Sets up to `bytes` aside, as far as the limit has room after idle memory was given back. A
  /// pool without a limit sets all of them aside, up to half of SIZE_MAX. It never waits.
  reservation reserve(std::size_t bytes) noexcept;

  /// Whether all allocated blocks have been freed.
  /// Cost     as `statistics`
  bool all_clear() const noexcept;

  /// The most bytes, live and cached, that the pool may hold; 0 means no limit. A new limit below
  /// the present size trims at once. Live blocks stay; allocations throw until there is room.
  std::size_t limit_bytes() const noexcept;
  void set_limit_bytes(std::size_t bytes) noexcept;

  /// Destroys an object, or an array of `count` elements, from make_unique and frees its memory.
  template <class T>
  struct deleter {
    memory_pool* pool = nullptr;
    std::size_t count = 0;

    /// Calls the destructors and gives the bytes back to the pool.
    void operator()(T* elements) const noexcept {
      std::destroy_n(elements, count);
      pool->deallocate(elements, count * sizeof(T), alignof(T) > 64 ? alignof(T) : 64);
    }
  };

  /// The results of `make_unique`. They must not outlive the pool.
  template <class T>
  using unique_object = std::unique_ptr<T, deleter<T>>;
  template <class T>
  using unique_array = std::unique_ptr<T[], deleter<T>>;

  /// An object that is constructed from `arguments`, or an array of `count` value-initialised
  /// elements, as by std::make_unique.
  /// Throws   out_of_memory, and whatever the constructor throws; the memory is freed then
  template <class T, class... Arguments>
  requires(!std::is_array_v<T>) unique_object<T> make_unique(Arguments&&... arguments) {
    auto made = make<T>(1, [&](T* to, std::size_t) {
      std::construct_at(to, std::forward<Arguments>(arguments)...);
    });
    const deleter<T> with = made.get_deleter();
    return unique_object<T>(made.release(), with);
  }
  template <class T>
  requires(std::is_unbounded_array_v<T>)
      unique_array<std::remove_extent_t<T>> make_unique(std::size_t count) {
    using Element = std::remove_extent_t<T>;
    return make<Element>(
        count, [](Element* to, std::size_t n) { std::uninitialized_value_construct_n(to, n); });
  }

  /// An array of `count` default-initialised elements. Elements of trivial types are uninitialised.
  /// Throws   as make_unique
  template <class T>
  requires(std::is_unbounded_array_v<T>)
      unique_array<std::remove_extent_t<T>> make_unique_for_overwrite(std::size_t count) {
    using Element = std::remove_extent_t<T>;
    return make<Element>(
        count, [](Element* to, std::size_t n) { std::uninitialized_default_construct_n(to, n); });
  }

  /// The same objects and arrays, with a shared owner.
  /// Throws   as make_unique; std::bad_alloc without memory for the reference count
  template <class T, class... Arguments>
  std::shared_ptr<T> make_shared(Arguments&&... arguments) {
    return make_unique<T>(std::forward<Arguments>(arguments)...);
  }
  template <class T>
  std::shared_ptr<T> make_shared_for_overwrite(std::size_t count) {
    return make_unique_for_overwrite<T>(count);
  }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* pointer, std::size_t bytes, std::size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override;

  [[noreturn]] static void throw_too_many(std::size_t count, std::size_t item_bytes);

  template <class T, class Construct>
  unique_array<T> make(std::size_t count, Construct construct) {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, sizeof(T), &bytes)) throw_too_many(count, sizeof(T));
    constexpr std::size_t alignment = alignof(T) > 64 ? alignof(T) : 64;
    auto* elements = static_cast<T*>(allocate(bytes, alignment));
    try {
      construct(elements, count);
    } catch (...) {
      deallocate(elements, bytes, alignment);
      throw;
    }
    return unique_array<T>(elements, deleter<T>{this, count});
  }

  std::unique_ptr<detail::pool_state> state_;
};

}  // namespace shale
