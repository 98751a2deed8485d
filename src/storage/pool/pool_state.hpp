// What a memory_pool is made of: the system allocator for small blocks, a heap of segments with
// a cache a thread in front of it, and mappings that stay whole; one quota over all.
//
// Locks, in the order in which they are taken: the list of pools (housekeeper.hpp), `chores_`,
// the hold of all caches, `central_`. A thread in its own cache takes `central_` only.
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
#include "storage/pool/memory_quota.hpp"
#include "storage/pool/segment_heap.hpp"
#include "storage/pool/size_classes.hpp"
#include "storage/pool/spinning_mutex.hpp"
#include "storage/pool/thread_caches.hpp"

namespace shale::detail {

class pool_state {
 public:
  /// Who calls `tend`: the process's housekeeper, or a test.
  enum class tending : std::uint8_t { by_housekeeper, by_caller };

  explicit pool_state(const pool_options& options, tending who = tending::by_housekeeper);
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

  /// Counts bytes as held that are not the pool's; returns how many the limit had room for.
  std::size_t reserve(std::size_t bytes) noexcept;
  void end_reservation(std::size_t bytes) noexcept;

  /// One tick of the housekeeping: gives back what has been idle long enough, and more while the
  /// idle bytes exceed what a pool may keep. Returns whether time alone still changes something.
  bool tend(pool_clock::time_point now) noexcept;

  /// Bytes that only this pool can use and nobody uses.
  std::size_t idle_bytes() const;

  /// Distinguishes pools for ever, unlike their addresses.
  std::uint64_t id() const noexcept { return id_; }
  tending tended() const noexcept { return tended_; }

  thread_cache& add_thread() { return caches_.add(); }
  void remove_thread(thread_cache& gone) noexcept;

  /// Around fork(): nothing is half done in the child.
  void lock_all() noexcept;
  void unlock_all() noexcept;

  bool is_consistent() const;

 private:
  void* serve(const block_request& wanted) noexcept;
  void* allocate_small(const block_request& wanted) noexcept;
  void* allocate_from(segment_heap& heap, const block_request& wanted) noexcept;
  enum class memory_wanted : std::uint8_t { backed, any };
  void* fetch(thread_cache& of, const block_request& wanted, memory_wanted which) noexcept;
  [[noreturn]] void throw_out_of_memory(std::size_t wanted_bytes) const;
  bool is_worth_collecting() const noexcept;

  void make_room(thread_cache& of, const block_request& freed) noexcept;
  void shrink(thread_cache& of, std::size_t bytes) noexcept;
  void give_half_back(thread_cache& of, std::size_t size_class) noexcept;
  void give_large_back(thread_cache& of) noexcept;
  void give_back(void* block, pool_clock::time_point now) noexcept;

  void count_in(std::size_t bytes) noexcept;
  void count_out(std::size_t bytes) noexcept;
  void count(thread_cache& of, std::int64_t blocks, std::size_t bytes) noexcept;
  void settle(thread_cache& of) noexcept;
  void declare(thread_cache& of) noexcept;
  struct totals {
    std::size_t cached_bytes = 0;  // by threads
    std::uint64_t hits = 0;
    std::int64_t live_blocks = 0;
    std::int64_t live_bytes = 0;
    std::int64_t peak_live_bytes = 0;
  };
  totals count_all() const noexcept;
  enum class which_blocks : std::uint8_t { all, unused };  // unused since the last tick
  void empty(thread_cache& of, which_blocks which) noexcept;
  void empty_caches(which_blocks which) noexcept;
  void lower_idle_bytes() noexcept;
  std::size_t idle_bytes_allowed() const noexcept;

  const std::uint64_t id_;
  const tending tended_;
  const decay_ages ages_;
  memory_quota quota_;

  std::mutex chores_;  // one tick or trim at a time
  mutable thread_caches caches_;
  std::optional<thread_caches::hold> held_for_fork_;
  mutable spinning_mutex central_;  // guards the heaps
  segment_heap segments_{quota_, segment_heap::cutting::to_size};
  segment_heap mappings_{quota_, segment_heap::cutting::never};
  std::optional<pool_clock::time_point> over_since_;  // under chores_: too much is idle

  // What no thread's cache counts.
  std::atomic<std::int64_t> live_bytes_ = 0;
  std::atomic<std::int64_t> live_blocks_ = 0;
  std::atomic<std::int64_t> peak_live_bytes_ = 0;
  std::atomic<std::uint64_t> hits_ = 0;
  std::atomic<std::uint64_t> misses_ = 0;
  std::atomic<std::int64_t> declared_bytes_ = 0;  // kept by threads, about
  std::atomic<std::size_t> reserved_bytes_ = 0;
};

}  // namespace shale::detail
