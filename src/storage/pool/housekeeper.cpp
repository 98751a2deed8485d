#include "storage/pool/housekeeper.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "storage/pool/idle_memory.hpp"
#include "storage/pool/pool_state.hpp"
#include "storage/system/blocked_signals.hpp"
#include "storage/system/fork_handlers.hpp"
#include "storage/system/thread_end.hpp"

namespace shale::detail {

namespace {

system_memory read_this_system() { return read_system_memory(); }

// It is never destroyed, because threads and static objects may outlive all destructors of this
// library.
struct pool_list {
  std::mutex lock;
  std::vector<pool_state*> pools;

  std::atomic<memory_probe> probe = read_this_system;

  std::mutex start_lock;
  bool running = false;  // guarded by start_lock: the thread exists in this process
};

void lock_all_pools();
void unlock_all_pools();
void unlock_in_child();

pool_list& all_pools() {
  static pool_list& list = []() -> pool_list& {
    auto& made = *new pool_list;
    biased_lock::prepare();
    static constexpr fork_handlers handlers{lock_all_pools, unlock_all_pools, unlock_in_child};
    on_fork(forking_part::memory_pools, handlers);
    return made;
  }();
  return list;
}

void lock_all_pools() {
  auto& list = all_pools();
  list.lock.lock();
  for (auto* const pool : list.pools) pool->lock_all();
  list.start_lock.lock();
}

void unlock_all_pools() {
  auto& list = all_pools();
  list.start_lock.unlock();
  for (auto pool = list.pools.rbegin(); pool != list.pools.rend(); ++pool) (*pool)->unlock_all();
  list.lock.unlock();
}

void unlock_in_child() {
  auto& list = all_pools();
  list.running = false;  // the child has no such thread; the next idle block starts one
  housekeeper_awake = false;
  biased_lock::prepare();
  unlock_all_pools();
}

bool is_memory_short(const pool_list& list, memory_pressure& pressure) noexcept {
  try {
    return pressure.is_high(list.probe.load()(), pool_clock::now());
  } catch (...) {
    return true;  // there is not even memory to read the state
  }
}

std::size_t idle_bytes_of_all(pool_list& list) noexcept {
  const std::lock_guard lock(list.lock);
  std::size_t idle_bytes = 0;
  for (auto* const pool : list.pools) idle_bytes += pool->idle_bytes();
  return idle_bytes;
}

// One tick for all pools. Returns whether any pool still has memory that ages. The probe is called
// without a lock.
bool age_all_idle_memory(pool_list& list, memory_pressure& pressure) noexcept {
  const bool give_all_back =
      idle_bytes_of_all(list) >= worth_giving_back_bytes && is_memory_short(list, pressure);
  const std::lock_guard lock(list.lock);
  const auto now = pool_clock::now();
  bool ageing = false;
  for (auto* const pool : list.pools) {
    if (pool->who_ages() == pool_state::aged_by::caller) continue;
    if (give_all_back) pool->trim();
    if (pool->age_idle_memory(now)) ageing = true;
  }
  return ageing;
}

// The loop of the housekeeper thread. While any pool has memory that ages, it ticks twice a second,
// and each tick lets every pool give back the memory that is old enough. When a tick finds nothing
// more to do, the thread sleeps until a pool gets idle memory.
//
// The difficult part is falling asleep without missing a block. A thread that frees a block reads
// `housekeeper_awake` and wakes the housekeeper only if it is false, so that freeing stays cheap.
// The housekeeper therefore clears the flag first and then ticks once more: a block that was freed
// before the flag was cleared is found by this tick, and one that was freed after it wakes the
// thread.
[[noreturn]] void run_housekeeper() {
  auto& list = all_pools();
  memory_pressure pressure;
  for (;;) {
    // An atomic wait is used because a condition variable that is copied by fork while this thread
    // waits would block the child.
    housekeeper_awake.wait(false);
    // Sets the starting point, so that the next tick measures only the time since now.
    static_cast<void>(is_memory_short(list, pressure));
    while (housekeeper_awake.load()) {
      std::this_thread::sleep_for(idle_memory_tick);
      if (age_all_idle_memory(list, pressure)) continue;
      housekeeper_awake.store(false);
      if (age_all_idle_memory(list, pressure)) housekeeper_awake.store(true);
    }
  }
}

bool start_thread() noexcept {
  const blocked_signals blocked;
  try {
    std::thread(run_housekeeper).detach();
    return true;
  } catch (...) {
    return false;  // the next idle block tries again
  }
}

// ---- caches of threads --------------------------------------------------------------------------

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

void join_pools(pool_state& pool) {
  auto& list = all_pools();
  const std::lock_guard lock(list.lock);
  list.pools.push_back(&pool);
}

void leave_pools(pool_state& pool) noexcept {
  auto& list = all_pools();
  const std::lock_guard lock(list.lock);
  std::erase(list.pools, &pool);
}

void wake_housekeeper() noexcept {
  if (housekeeper_awake.exchange(true)) return;
  auto& list = all_pools();
  const std::lock_guard lock(list.start_lock);
  if (!list.running) list.running = start_thread();
  if (!list.running) housekeeper_awake.store(false);
  housekeeper_awake.notify_one();
}

memory_probe exchange_memory_probe(memory_probe probe) noexcept {
  return all_pools().probe.exchange(probe);
}

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
