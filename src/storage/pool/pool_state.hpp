// What a memory_pool is made of: the system allocator for small blocks, a heap of segments with
// magazines a thread in front of it, and mappings that stay whole; one quota over all.
//
// Locks, in the order in which they are taken: the list of pools (housekeeper.hpp), `chores_`,
// `threads_`, each thread's `lock`, `central_`.
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
#include "storage/pool/owned_lock.hpp"
#include "storage/pool/segment_heap.hpp"
#include "storage/pool/size_classes.hpp"
#include "storage/pool/spinning_mutex.hpp"

namespace shale::detail {

/// Class blocks that one thread keeps at hand, and what it counted and has not yet added to the
/// pool's counts. Its lock is contended only while somebody else trims or counts.
struct thread_magazines {
  struct magazine {
    std::uint32_t count = 0;
    std::uint32_t refill = 0;  // blocks to fetch at the next miss beyond the one that is wanted
    std::array<void*, magazine_blocks_max> blocks;
  };
  owned_lock lock;
  bool used = false;  // since the last tick
  std::array<magazine, size_classes> classes;
  std::size_t bytes = 0;       // in all classes
  std::size_t next_class = 0;  // to give back when they are too many
  std::uint64_t hits = 0;
  std::int64_t live_blocks = 0;  // allocated less freed here: negative where others allocate
  std::int64_t live_bytes = 0;
  std::int64_t peak_live_bytes = 0;  // highest sum of these and the pool's
};

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

  thread_magazines& add_thread();
  void remove_thread(thread_magazines& gone) noexcept;

  /// Around fork(): nothing is half done in the child.
  void lock_all() noexcept;
  void unlock_all() noexcept;

  bool is_consistent() const;

 private:
  void* allocate_small(std::size_t bytes, std::size_t alignment) noexcept;
  void* allocate_class(std::size_t size_class) noexcept;
  void* allocate_large(segment_heap& from, std::size_t bytes, std::size_t alignment) noexcept;
  void* serve(block_route route, std::size_t bytes, std::size_t alignment) noexcept;
  void free_class(void* address, std::size_t size_class) noexcept;
  void* refill(thread_magazines& of, std::size_t size_class) noexcept;
  void make_room(thread_magazines& of, std::size_t size_class) noexcept;
  void give_back(thread_magazines& of, std::size_t size_class, std::uint32_t blocks,
                 pool_clock::time_point now) noexcept;
  void count_in(std::size_t bytes) noexcept;
  void count_out(std::size_t bytes) noexcept;
  void count(thread_magazines& of, std::int64_t blocks, std::size_t bytes) noexcept;
  void settle(thread_magazines& of) noexcept;
  struct totals {
    std::size_t cached_bytes = 0;  // in magazines
    std::uint64_t hits = 0;
    std::int64_t live_blocks = 0;
    std::int64_t live_bytes = 0;
    std::int64_t peak_live_bytes = 0;
  };
  totals count_all() const noexcept;
  enum class which_threads : std::uint8_t { all, unused };
  void empty_magazines(which_threads which) noexcept;
  void empty_locked(thread_magazines& of) noexcept;
  void lower_idle_bytes() noexcept;
  std::size_t idle_bytes_allowed() const noexcept;

  const std::uint64_t id_;
  const tending tended_;
  const decay_ages ages_;
  memory_quota quota_;

  std::mutex chores_;           // one tick or trim at a time
  mutable std::mutex threads_;  // guards magazines_
  std::vector<std::unique_ptr<thread_magazines>> magazines_;
  mutable spinning_mutex central_;  // guards the heaps
  segment_heap segments_{quota_, segment_heap::cutting::to_size};
  segment_heap mappings_{quota_, segment_heap::cutting::never};
  std::optional<pool_clock::time_point> over_since_;  // under chores_: too much is idle

  // What no thread's magazines count.
  std::atomic<std::int64_t> live_bytes_ = 0;
  std::atomic<std::int64_t> live_blocks_ = 0;
  std::atomic<std::int64_t> peak_live_bytes_ = 0;
  std::atomic<std::uint64_t> hits_ = 0;
  std::atomic<std::uint64_t> misses_ = 0;
  std::atomic<std::size_t> reserved_bytes_ = 0;
};

}  // namespace shale::detail
