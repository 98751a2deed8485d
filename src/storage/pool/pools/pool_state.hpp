// Implements memory_pool. It combines the system allocator for small blocks, a heap of segments
// with a cache for each thread in front of it, and whole mappings for large blocks. One quota
// limits all of them.
//
// idle_memory.hpp has the rule by which idle memory goes back to the system. `age_idle_memory`
// applies it, twice a second; `trim` gives everything back at once.
//
// Locks are taken in this order: the list of pools (pool_list.hpp), `maintenance_lock_`, the hold
// of all caches, `central_`. A thread that holds its own cache takes only `central_`.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "shale/memory_pool.hpp"
#include "storage/pool/caches/thread_caches.hpp"
#include "storage/pool/heap/idle_memory.hpp"
#include "storage/pool/heap/memory_quota.hpp"
#include "storage/pool/heap/segment_heap.hpp"
#include "storage/pool/heap/size_classes.hpp"
#include "storage/pool/heap/spinning_mutex.hpp"
#include "storage/pool/pools/pool_counts.hpp"

namespace shale::detail {

class pool_state {
 public:
  /// The caller of `age_idle_memory`: the housekeeper thread of the process, or the owner of the
  /// pool (a test).
  enum class aged_by : std::uint8_t { housekeeper, caller };

  explicit pool_state(const pool_options& options, aged_by who = aged_by::housekeeper);
  ~pool_state();
  pool_state(const pool_state&) = delete;
  pool_state& operator=(const pool_state&) = delete;

  /// Throws out_of_memory.
  void* allocate(std::size_t bytes, std::size_t alignment);
  void deallocate(void* address, std::size_t bytes, std::size_t alignment) noexcept;

  pool_statistics statistics() const;
  void reset_peak() noexcept;
  std::size_t trim() noexcept;
  bool all_clear() const noexcept;
  std::size_t limit_bytes() const noexcept { return quota_.limit_bytes(); }
  void set_limit_bytes(std::size_t bytes) noexcept;

  /// Counts bytes that do not belong to the pool towards its limit; returns how many of them fit in
  /// the limit.
  std::size_t reserve(std::size_t bytes) noexcept;
  void end_reservation(std::size_t bytes) noexcept;

  /// One tick of the rule in idle_memory.hpp: gives back memory that has been idle long enough, and
  /// more if the pool has had too much idle memory for a second. Returns whether further ticks can
  /// still change something.
  bool age_idle_memory(pool_clock::time_point now) noexcept;

  /// Idle bytes: resident memory that only this pool can use and that is not live.
  std::size_t idle_bytes() const;

  /// A number that is never used again for another pool, unlike an address.
  std::uint64_t id() const noexcept { return id_; }
  aged_by who_ages() const noexcept { return who_ages_; }

  thread_cache& add_thread() { return caches_.add(); }
  void remove_thread(thread_cache& gone) noexcept;

  /// Called around fork(), so that the child finds no operation half done.
  void lock_all() noexcept;
  void unlock_all() noexcept;

  bool is_consistent() const;

 private:
  void* try_allocate(const block_request& wanted) noexcept;
  void* allocate_small(const block_request& wanted) noexcept;
  void* allocate_from(segment_heap& heap, const block_request& wanted) noexcept;
  enum class memory_wanted : std::uint8_t { resident, any };
  void* fetch(thread_cache& cache, const block_request& wanted, memory_wanted memory) noexcept;
  [[noreturn]] void throw_out_of_memory(std::size_t wanted_bytes) const;

  void make_room(thread_cache& cache, const block_request& freed) noexcept;
  void shrink(thread_cache& cache, std::size_t bytes) noexcept;
  void give_half_back(thread_cache& cache, std::size_t size_class) noexcept;
  void give_large_back(thread_cache& cache) noexcept;
  void give_back(void* block, pool_clock::time_point now) noexcept;

  pool_counts::totals count_all() const noexcept;
  enum class cached_blocks : std::uint8_t { all, unused };  // unused since the last tick
  void empty_cache(thread_cache& cache, cached_blocks blocks) noexcept;
  void empty_caches(cached_blocks blocks) noexcept;
  std::size_t allowed_bytes() const noexcept;
  void lower_idle_bytes() noexcept;

  const std::uint64_t id_;
  const aged_by who_ages_;
  const decay_ages ages_;
  memory_quota quota_;

  std::mutex maintenance_lock_;  // guards ticks and trims: one at a time
  mutable thread_caches caches_;
  std::optional<thread_caches::hold> held_for_fork_;
  mutable spinning_mutex central_;  // guards the heaps
  segment_heap segments_{quota_, segment_heap::cutting::to_size};
  segment_heap mappings_{quota_, segment_heap::cutting::never};
  idle_excess excess_;  // under maintenance_lock_

  pool_counts counts_;
  std::atomic<std::size_t> reserved_bytes_ = 0;
};

}  // namespace shale::detail
