// The caches of the calling thread, one in each pool that it has used. (`thread_caches` are the
// caches of all threads in one pool.)
#pragma once

#include <cstdint>

namespace shale::detail {

class pool_state;
class thread_cache;

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
