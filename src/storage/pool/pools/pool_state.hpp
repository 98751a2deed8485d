// Implements memory_pool. It combines the system allocator for small blocks, the heaps
// (shared_heaps.hpp), and a cache for each thread in front of them. One quota limits all of them.
//
// idle_memory.hpp has the rule by which idle memory goes back to the system. `age_idle_memory`
// applies it, twice a second; `trim` gives everything back at once.
//
// Locks are taken in this order: the list of pools (pool_list.hpp), `maintenance_lock_`, the hold
// of all caches, the hold of the heaps. A thread that holds its own cache takes only the last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "shale/memory_pool.hpp"
#include "storage/pool/caches/thread_caches.hpp"
#include "storage/pool/heap/idle_memory.hpp"
#include "storage/pool/heap/memory_quota.hpp"
#include "storage/pool/heap/shared_heaps.hpp"
#include "storage/pool/heap/size_classes.hpp"
#include "storage/pool/pools/pool_counts.hpp"

namespace shale::detail {

class pool_state {
 public:
  /// The caller of `age_idle_memory`: the housekeeper thread of the process, or the owner of the
  /// pool (a test).
  enum class aged_by : std::uint8_t { housekeeper, caller };

  explicit pool_state(const pool_options& options, aged_by ager = aged_by::housekeeper);
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
  void end_reservation(std::size_t bytes) noexcept { quota_.end_reservation(bytes); }

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
  void* allocate_uncached(const block_request& wanted) noexcept;
  enum class memory_wanted : std::uint8_t { resident, any };
  void* fetch(thread_cache& cache, const block_request& wanted, memory_wanted memory) noexcept;
  [[noreturn]] void throw_out_of_memory(std::size_t wanted_bytes) const;

  pool_counts::totals count_all() const noexcept;
  enum class cached_blocks : std::uint8_t { all, unused };  // unused since the last tick
  void empty_cache(thread_cache& cache, cached_blocks blocks) noexcept;
  void empty_caches(cached_blocks blocks) noexcept;
  std::size_t allowed_bytes() const noexcept;
  void lower_idle_bytes(pool_clock::time_point now) noexcept;

  // Everything that fork() must find unused, in the order of the locks.
  struct everything_held {
    explicit everything_held(pool_state& pool)
        : maintenance(pool.maintenance_lock_), caches(pool.caches_), heaps(pool.heaps_) {}

    const std::lock_guard<std::mutex> maintenance;
    const thread_caches::hold caches;
    const shared_heaps::hold heaps;
  };

  const std::uint64_t id_;
  const aged_by who_ages_;
  const decay_ages ages_;
  memory_quota quota_;

  std::mutex maintenance_lock_;  // guards ticks and trims: one at a time
  idle_excess excess_;           // under maintenance_lock_
  mutable thread_caches caches_;
  mutable shared_heaps heaps_{quota_};
  pool_counts counts_;
  std::optional<everything_held> held_for_fork_;
};

}  // namespace shale::detail
