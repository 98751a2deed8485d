// A caching allocator for tensor temporaries.
//
// Invariants
//   pool.1  live + cached = mapped: every byte obtained from the system is one or the other
//   pool.2  blocks are 64-byte aligned and never overlap while live
//   pool.3  a limit that is met throws and leaves the pool as it was
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
class pool_state;  // src/storage/pool/pool_state.hpp
}

/// What a pool is made with.
struct pool_options {
  /// Most bytes the pool may hold from the system (live and cached); 0: no limit of its own.
  std::size_t limit_bytes = 0;
};

/// What a pool holds and has done; bytes unless the name says otherwise.
struct pool_statistics {
  std::size_t live_bytes = 0;  ///< handed out, as requested sizes rounded to blocks
  std::size_t live_blocks = 0;
  /// Highest live_bytes since construction or reset_peak; right to 4 MiB and a block a thread.
  std::size_t peak_live_bytes = 0;
  std::size_t cached_bytes = 0;  ///< mapped, not live
  std::size_t idle_bytes = 0;    ///< of the cached: not yet given back to the system
  std::size_t mapped_bytes = 0;
  std::size_t reserved_bytes = 0;  ///< set aside by `reserve`; the limit counts them too
  std::size_t largest_free_bytes = 0;
  std::uint64_t hits = 0;    ///< allocations of 32 KiB and more served from the cache
  std::uint64_t misses = 0;  ///< those that needed new memory from the system
  std::uint64_t splits = 0;
  std::uint64_t coalesces = 0;
};

/// A pool of memory blocks, usable as any std::pmr memory resource.
/// Below 32 KiB it passes on to the system allocator; above that, good fit over 64 MiB segments on
/// huge pages, where threads keep some blocks of up to 1 MiB (of 21 sizes) at hand; above 256 MiB a
/// mapping of its own. Idle memory goes back to the system after a while and under pressure.
/// Threads  every member may be called from any thread; a block may be freed by another thread
/// Lifetime the pool must outlive its blocks; storages keep the default pool alive by themselves
class memory_pool final : public std::pmr::memory_resource {
 public:
  /// Takes nothing from the system yet.
  explicit memory_pool(const pool_options& options = {});
  ~memory_pool() override;
  memory_pool(const memory_pool&) = delete;
  memory_pool& operator=(const memory_pool&) = delete;

  /// The process's pool, made on first use, never destroyed.
  static memory_pool& default_pool();

  /// Consistent up to blocks that other threads are taking or giving back at that moment. Costs a
  /// system call that makes the process's running threads pause for a microsecond.
  pool_statistics statistics() const;

  /// Starts peak_live_bytes again from what is live now.
  void reset_peak() noexcept;

  /// Gives what nobody uses back to the system, also what other threads keep at hand. Returns the
  /// bytes unmapped; what is left of cached_bytes then has no memory behind it.
  std::size_t trim() noexcept;

  /// Bytes of the limit that are used for something that is not the pool's, such as pages of mapped
  /// files; move-only, gives them back at its end. Must not outlive the pool.
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

    /// As many as were asked for, or as there was room for.
    std::size_t bytes() const noexcept { return bytes_; }

   private:
    friend memory_pool;
    reservation(memory_pool& pool, std::size_t bytes) noexcept : pool_(&pool), bytes_(bytes) {}

    memory_pool* pool_ = nullptr;
    std::size_t bytes_ = 0;
  };

  /// Sets up to `bytes` aside: as many as the limit has room for, once what nobody uses has been
  /// given back; in a pool without a limit all of them, up to half of SIZE_MAX. Never waits, never
  /// throws.
  reservation reserve(std::size_t bytes) noexcept;

  /// Whether everything ever allocated has come back. Costs what `statistics` does.
  bool all_clear() const noexcept;

  /// Live and cached bytes allowed; 0: no limit. One below what is held trims at once; live blocks
  /// stay, and allocations throw until there is room.
  std::size_t limit_bytes() const noexcept;
  void set_limit_bytes(std::size_t bytes) noexcept;

  /// Frees an array (or an object) made by make_unique, counting elements, into its pool.
  template <class T>
  struct deleter {
    memory_pool* pool = nullptr;
    std::size_t count = 0;

    /// Runs the destructors and gives the bytes back.
    void operator()(T* elements) const noexcept {
      std::destroy_n(elements, count);
      pool->deallocate(elements, count * sizeof(T), alignof(T) > 64 ? alignof(T) : 64);
    }
  };

  /// The owner that `make_unique` hands out; must not outlive the pool.
  template <class T>
  using unique_array = std::unique_ptr<T[], deleter<T>>;

  /// `count` value-initialised elements.
  /// Throws   out_of_memory, and what T's constructor throws (then nothing stays allocated)
  template <class T>
  unique_array<T> make_unique(std::size_t count) {
    return make<T>(count,
                   [](T* to, std::size_t n) { std::uninitialized_value_construct_n(to, n); });
  }

  /// `count` default-initialised elements: indeterminate for trivial types.
  template <class T>
  unique_array<T> make_unique_for_overwrite(std::size_t count) {
    return make<T>(count,
                   [](T* to, std::size_t n) { std::uninitialized_default_construct_n(to, n); });
  }

  /// The same with a shared owner.
  template <class T>
  std::shared_ptr<T[]> make_shared(std::size_t count) {
    return make_unique<T>(count);
  }
  template <class T>
  std::shared_ptr<T[]> make_shared_for_overwrite(std::size_t count) {
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
