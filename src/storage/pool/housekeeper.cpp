#include "storage/pool/housekeeper.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "storage/pool/memory_pressure.hpp"
#include "storage/pool/pool_state.hpp"

namespace shale::detail {

namespace {

constexpr std::chrono::milliseconds tick{500};

// Less idle memory than this would help nobody who is short of it.
constexpr std::size_t worth_asking_bytes = std::size_t{16} << 20;

system_memory read_this_system() { return read_system_memory(); }

// Never destroyed: threads and static objects may outlive every destructor of ours.
struct pool_list {
  std::mutex lock;
  std::vector<pool_state*> pools;

  std::atomic<memory_probe> probe = read_this_system;

  std::mutex start_lock;
  bool running = false;  // under start_lock: there is a thread (in this process)
};

void lock_all_pools();
void unlock_all_pools();
void unlock_in_child();

pool_list& all_pools() {
  static pool_list& list = []() -> pool_list& {
    auto& made = *new pool_list;
    biased_lock::prepare();
    pthread_atfork(lock_all_pools, unlock_all_pools, unlock_in_child);
    return made;
  }();
  return list;
}

void lock_all_pools() {
  auto& list = all_pools();
  list.lock.lock();
  for (auto* const each : list.pools) each->lock_all();
  list.start_lock.lock();
}

void unlock_all_pools() {
  auto& list = all_pools();
  list.start_lock.unlock();
  for (auto each = list.pools.rbegin(); each != list.pools.rend(); ++each) (*each)->unlock_all();
  list.lock.unlock();
}

void unlock_in_child() {
  auto& list = all_pools();
  list.running = false;  // threads stay with the parent; the next idle block starts one here
  housekeeper_awake = false;
  biased_lock::prepare();
  unlock_all_pools();
}

bool is_memory_short(const pool_list& list, memory_pressure& pressure) noexcept {
  try {
    return pressure.is_high(list.probe.load()(), pool_clock::now());
  } catch (...) {
    return true;  // not even enough to ask
  }
}

// Whether any pool still has something that ages.
bool tend_all(pool_list& list, memory_pressure& pressure) noexcept {
  const std::lock_guard lock(list.lock);
  std::size_t idle_bytes = 0;
  for (auto* const each : list.pools) idle_bytes += each->idle_bytes();
  const bool give_all_back = idle_bytes >= worth_asking_bytes && is_memory_short(list, pressure);
  const auto now = pool_clock::now();
  bool ageing = false;
  for (auto* const each : list.pools) {
    if (each->tended() == pool_state::tending::by_caller) continue;
    if (give_all_back) each->trim();
    if (each->tend(now)) ageing = true;
  }
  return ageing;
}

[[noreturn]] void keep_house() {
  auto& list = all_pools();
  memory_pressure pressure;
  for (;;) {
    // Not a condition variable: a child forked meanwhile would wait for this thread inside its own.
    housekeeper_awake.wait(false);
    static_cast<void>(
        is_memory_short(list, pressure));  // what was waited for until now is not news
    while (housekeeper_awake.load()) {
      std::this_thread::sleep_for(tick);
      if (tend_all(list, pressure)) continue;
      // Whoever frees from here on wakes us; whoever did before is seen by a last look.
      housekeeper_awake.store(false);
      if (tend_all(list, pressure)) housekeeper_awake.store(true);
    }
  }
}

// The host program's signals are not for this thread.
bool start_thread() noexcept {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = true;
  try {
    std::thread(keep_house).detach();
  } catch (...) {
    started = false;  // the next idle block tries again
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

// ---- caches of threads --------------------------------------------------------------------------

// Set when the thread's entries have been destroyed; trivially destructible, so that it can be read
// by whatever frees blocks after that.
thread_local bool thread_ends = false;

class thread_entries {
 public:
  ~thread_entries() {
    thread_ends = true;
    recent = {};
    auto& list = all_pools();
    const std::lock_guard lock(list.lock);
    for (const auto& each : entries_)
      for (auto* const pool : list.pools)
        if (pool->id() == each.pool_id) pool->remove_thread(*each.cache);
  }

  thread_cache* find(pool_state& pool) {
    for (const auto& each : entries_)
      if (each.pool_id == pool.id()) return each.cache;
    // Entries of pools that are gone are dropped when there is something to add.
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
    std::erase_if(entries_, [&](const entry& each) {
      return std::none_of(list.pools.begin(), list.pools.end(),
                          [&](const pool_state* pool) { return pool->id() == each.pool_id; });
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
  static thread_local thread_entries entries;
  try {
    recent = {pool.id(), entries.find(pool)};
    return recent.cache;
  } catch (...) {
    return nullptr;
  }
}

}  // namespace shale::detail
