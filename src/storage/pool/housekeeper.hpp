// The one thread that ages the idle memory of all pools, and the list of the pools that live.
// Starts with the first idle block, sleeps while nothing ages.
#pragma once

#include <atomic>
#include <cstdint>

#include "storage/system_memory.hpp"

namespace shale::detail {

class pool_state;
class thread_cache;

/// Enters a pool into the list, and takes it off again; after `leave` nobody looks at it.
void join_pools(pool_state& pool);
void leave_pools(pool_state& pool) noexcept;

/// Whether the housekeeper ticks, or is about to.
inline std::atomic<bool> housekeeper_awake = false;
void wake_housekeeper() noexcept;

/// Tells the housekeeper that some pool has idle memory. Cheap when it knows.
inline void mind_idle_memory() noexcept {
  if (!housekeeper_awake.load(std::memory_order_relaxed)) wake_housekeeper();
}

/// Where the housekeeper reads whether memory is short; returns what it was before. For tests.
using memory_probe = system_memory (*)();
memory_probe exchange_memory_probe(memory_probe probe) noexcept;

/// The cache that the calling thread used last, and whose it is: pools' numbers start at 1.
struct recent_cache {
  std::uint64_t pool_id = 0;
  thread_cache* cache = nullptr;
};
[[gnu::tls_model("initial-exec")]] extern constinit thread_local recent_cache recent;

thread_cache* find_cache_of_this_thread(pool_state& pool) noexcept;

/// The calling thread's cache in the pool of that number; null while the thread ends, or if there
/// is no memory for it.
inline thread_cache* cache_of_this_thread(pool_state& pool, std::uint64_t pool_id) noexcept {
  return recent.pool_id == pool_id ? recent.cache : find_cache_of_this_thread(pool);
}

}  // namespace shale::detail
