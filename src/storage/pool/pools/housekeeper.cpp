#include "storage/pool/pools/housekeeper.hpp"

#include <mutex>
#include <thread>
#include <type_traits>

#include "storage/pool/heap/idle_memory.hpp"
#include "storage/pool/pools/pool_list.hpp"
#include "storage/pool/pools/pool_state.hpp"
#include "storage/system/blocked_signals.hpp"
#include "storage/system/fork_handlers.hpp"

namespace shale::detail {

namespace {

system_memory read_this_system() { return read_system_memory(); }

// Nothing here has a destructor: threads and static objects may outlive those of this library.
constinit std::atomic<memory_probe> probe_in_use = read_this_system;
constinit std::mutex start_lock;
static_assert(std::is_trivially_destructible_v<std::mutex>);
constinit bool running = false;  // guarded by start_lock: the thread exists in this process

void lock_start() { start_lock.lock(); }
void unlock_start() { start_lock.unlock(); }

void unlock_start_in_child() {
  running = false;  // the child has no such thread; the next idle block starts one
  housekeeper_awake = false;
  start_lock.unlock();
}

constexpr fork_handlers start_handlers{lock_start, unlock_start, unlock_start_in_child};

// This runs at program start, so that no thread forks while another one registers the handlers.
[[maybe_unused]] const int start_registered = on_fork(forking_part::housekeeper, start_handlers);

bool is_memory_short(memory_pressure& pressure) noexcept {
  try {
    return pressure.is_high(probe_in_use.load()(), pool_clock::now());
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
      idle_bytes_of_all(list) >= worth_giving_back_bytes && is_memory_short(pressure);
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
    static_cast<void>(is_memory_short(pressure));
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

}  // namespace

void wake_housekeeper() noexcept {
  if (housekeeper_awake.exchange(true)) return;
  const std::lock_guard lock(start_lock);
  if (!running) running = start_thread();
  if (!running) housekeeper_awake.store(false);
  housekeeper_awake.notify_one();
}

memory_probe exchange_memory_probe(memory_probe probe) noexcept {
  return probe_in_use.exchange(probe);
}

}  // namespace shale::detail
