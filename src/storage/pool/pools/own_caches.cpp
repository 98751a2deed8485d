#include "storage/pool/pools/own_caches.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "storage/pool/pools/pool_list.hpp"
#include "storage/pool/pools/pool_state.hpp"
#include "storage/system/thread_end.hpp"

namespace shale::detail {

namespace {

class thread_entries;

// Both are trivially destructible, so that code that frees blocks while the thread ends can read
// them.
constinit thread_local thread_entries* entries_of_thread = nullptr;
constinit thread_local bool thread_ends = false;  // the entries have been destroyed

class thread_entries final : public thread_owned {
 public:
  ~thread_entries() override {
    if (entries_of_thread != this) return;  // never used
    entries_of_thread = nullptr;
    thread_ends = true;
    recent = {};
    auto& list = all_pools();
    const std::lock_guard lock(list.lock);
    for (const auto& listed : entries_)
      for (auto* const pool : list.pools)
        if (pool->id() == listed.pool_id) pool->remove_thread(*listed.cache);
  }

  thread_cache* find(pool_state& pool) {
    for (const auto& listed : entries_)
      if (listed.pool_id == pool.id()) return listed.cache;
    // Entries of destroyed pools are removed when the list would have to grow.
    if (entries_.size() == entries_.capacity()) drop_stale();
    entries_.reserve(entries_.size() + 1);
    entries_.push_back({pool.id(), &pool.add_thread()});
    return entries_.back().cache;
  }

 private:
  struct entry {
    std::uint64_t pool_id;
    thread_cache* cache;
  };

  void drop_stale() {
    auto& list = all_pools();
    const std::lock_guard lock(list.lock);
    std::erase_if(entries_, [&](const entry& listed) {
      return std::none_of(list.pools.begin(), list.pools.end(),
                          [&](const pool_state* pool) { return pool->id() == listed.pool_id; });
    });
  }

  std::vector<entry> entries_;
};

}  // namespace

constinit thread_local recent_cache recent;

thread_cache* find_cache_of_this_thread(pool_state& pool) noexcept {
  if (thread_ends) return nullptr;
  try {
    if (entries_of_thread == nullptr) {
      auto made = std::make_unique<thread_entries>();
      if (!made->leave_to_thread()) return nullptr;
      entries_of_thread = made.release();
    }
    recent = {pool.id(), entries_of_thread->find(pool)};
    return recent.cache;
  } catch (...) {
    return nullptr;
  }
}

}  // namespace shale::detail
