// The list of living pools, the housekeeper thread, and the caches of the calling thread. The
// thread ages the idle memory of all pools by the rule in idle_memory.hpp. It starts with the first
// idle block and sleeps while nothing ages.
#pragma once

#include <atomic>
#include <cstdint>

#include "storage/system/system_memory.hpp"

namespace shale::detail {

class pool_state;
class thread_cache;

/// Adds a pool to the list and removes it; after `leave_pools` no other thread accesses it.
void join_pools(pool_state& pool);
void leave_pools(pool_state& pool) noexcept;

/// Whether the housekeeper is ticking or about to tick.
inline std::atomic<bool> housekeeper_awake = false;
void wake_housekeeper() noexcept;

/// Tells the housekeeper that some pool has idle memory. Cheap if it is awake.
inline void announce_idle_memory() noexcept {
  if (!housekeeper_awake.load(std::memory_order_relaxed)) wake_housekeeper();
}

/// Replaces the function by which the housekeeper reads the state of memory; returns the previous
/// one. For tests.
using memory_probe = system_memory (*)();
memory_probe exchange_memory_probe(memory_probe probe) noexcept;

/// The cache that the calling thread used last and the number of its pool; numbers of pools start
/// at 1.
struct recent_cache {
  std::uint64_t pool_id = 0;
  thread_cache* cache = nullptr;
};
[[gnu::tls_model("initial-exec")]] extern constinit thread_local recent_cache recent;

thread_cache* find_cache_of_this_thread(pool_state& pool) noexcept;

/// The calling thread's cache in the pool with that number; null while the thread ends, or if there
/// is no memory for a cache.
inline thread_cache* cache_of_this_thread(pool_state& pool, std::uint64_t pool_id) noexcept {
  return recent.pool_id == pool_id ? recent.cache : find_cache_of_this_thread(pool);
}

}  // namespace shale::detail
