// Counts the live blocks of a pool, and the bytes that threads keep. Each thread counts in its own
// cache what it allocates and frees, and adds its counts to those of the pool only now and then:
// otherwise all processors would write the same numbers all the time. While no thread can use its
// cache (thread_caches::hold), the sum of the pool's counts and of those in all caches is exact.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "storage/pool/caches/thread_caches.hpp"

namespace shale::detail {

/// Threads  any; members that take a thread_cache need its lock
class pool_counts {
 public:
  /// The sum of the counts of the pool and of all threads.
  struct totals {
    std::size_t cached_bytes = 0;  // in caches of threads
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    std::int64_t live_blocks = 0;
    std::int64_t live_bytes = 0;
    std::int64_t peak_live_bytes = 0;
  };
  totals sum(const thread_caches::hold& all) const noexcept {
    totals result{.hits = hits_.load(std::memory_order_relaxed),
                  .misses = misses_.load(std::memory_order_relaxed),
                  .live_blocks = live_blocks_.load(std::memory_order_relaxed),
                  .live_bytes = live_bytes_.load(std::memory_order_acquire),
                  .peak_live_bytes = peak_live_bytes_.load(std::memory_order_relaxed)};
    for (const auto& cache : all) {
      result.cached_bytes += cache->bytes();
      result.hits += cache->hits;
      result.live_blocks += cache->live_blocks;
      result.live_bytes += cache->live_bytes;
      result.peak_live_bytes = std::max(result.peak_live_bytes, cache->peak_live_bytes);
    }
    return result;
  }

  /// The live bytes, without those that threads have not added yet.
  std::int64_t live_bytes() const noexcept { return live_bytes_.load(std::memory_order_relaxed); }

  /// Whether the caches of threads hold so much that it is worth emptying them before new memory is
  /// touched.
  bool caches_are_worth_emptying() const noexcept {
    const std::int64_t kept = reported_bytes_.load(std::memory_order_relaxed);
    return kept > 0 && kept >= live_bytes() / part_worth_emptying;
  }

  // Counts an allocation that needed no new memory of the system (a hit), or one that did.
  void count_hit() noexcept { hits_.fetch_add(1, std::memory_order_relaxed); }
  void count_miss() noexcept { misses_.fetch_add(1, std::memory_order_relaxed); }

  /// A block of `bytes` has become live, without a cache.
  void count_in(std::size_t bytes) noexcept {
    live_blocks_.fetch_add(1, std::memory_order_relaxed);
    const auto more = static_cast<std::int64_t>(bytes);
    raise_peak(live_bytes_.fetch_add(more, std::memory_order_relaxed) + more);
  }

  /// A block of `bytes` is no longer live. The release order makes a thread's last accesses to the
  /// block happen before `all_clear` of its pool returns true.
  void count_out(std::size_t bytes) noexcept {
    live_blocks_.fetch_sub(1, std::memory_order_relaxed);
    live_bytes_.fetch_sub(static_cast<std::int64_t>(bytes), std::memory_order_release);
  }

  /// The cache's thread has allocated (`blocks` = 1) or freed (-1) a block of `bytes`.
  [[gnu::always_inline]] void count(thread_cache& cache, std::int64_t blocks,
                                    std::size_t bytes) noexcept {
    const auto size = static_cast<std::int64_t>(bytes);
    cache.live_blocks += blocks;
    cache.live_bytes += blocks * size;
    if (blocks > 0)
      cache.peak_live_bytes = std::max(cache.peak_live_bytes, live_bytes() + cache.live_bytes);
    if (std::abs(cache.live_bytes) > unflushed_bytes_max + size) [[unlikely]]
      flush(cache);
  }

  /// Adds the thread's live bytes to those of the pool.
  void flush(thread_cache& cache) noexcept {
    live_bytes_.fetch_add(cache.live_bytes, std::memory_order_acq_rel);
    raise_peak(cache.peak_live_bytes);
    cache.live_bytes = 0;
  }

  /// Adds all counts of a thread that ends.
  void take_over(thread_cache& gone) noexcept {
    flush(gone);
    hits_.fetch_add(gone.hits, std::memory_order_relaxed);
    live_blocks_.fetch_add(gone.live_blocks, std::memory_order_relaxed);
  }

  /// Reports the bytes in a thread's cache to the pool, but not for every block.
  void report_cached_bytes(thread_cache& cache) noexcept {
    const auto more =
        static_cast<std::int64_t>(cache.bytes()) - static_cast<std::int64_t>(cache.reported_bytes);
    if (more < reported_step && (more > -reported_step || cache.bytes() > 0)) [[likely]]
      return;
    reported_bytes_.fetch_add(more, std::memory_order_relaxed);
    cache.reported_bytes = cache.bytes();
  }

  /// Sets the highest number of live bytes to the present number.
  void reset_peak(const thread_caches::hold& all) noexcept {
    for (const auto& cache : all) {
      flush(*cache);
      cache->peak_live_bytes = 0;
    }
    peak_live_bytes_.store(live_bytes(), std::memory_order_relaxed);
  }

 private:
  // By how much the bytes in a thread's cache may change before the thread reports them.
  static constexpr std::int64_t reported_step = std::int64_t{256} << 10;

  // Caches are worth emptying if they hold at least this fraction (1/32) of the live bytes.
  static constexpr std::int64_t part_worth_emptying = 32;

  // A thread adds its live bytes to the pool's when they exceed this, not counting the last block.
  static constexpr std::int64_t unflushed_bytes_max = std::int64_t{4} << 20;

  void raise_peak(std::int64_t to) noexcept {
    std::int64_t seen = peak_live_bytes_.load(std::memory_order_relaxed);
    while (seen < to &&
           !peak_live_bytes_.compare_exchange_weak(seen, to, std::memory_order_relaxed)) {
    }
  }

  // The counts that threads have added.
  std::atomic<std::int64_t> live_bytes_ = 0;
  std::atomic<std::int64_t> live_blocks_ = 0;
  std::atomic<std::int64_t> peak_live_bytes_ = 0;
  std::atomic<std::uint64_t> hits_ = 0;
  std::atomic<std::uint64_t> misses_ = 0;
  std::atomic<std::int64_t> reported_bytes_ = 0;  // approximate bytes in caches of threads
};

}  // namespace shale::detail
