#include "parallel/threads/thread_share.hpp"

#include <pthread.h>
#include <tbb/global_control.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include "shale/executor.hpp"
#include "storage/system/blocked_signals.hpp"
#include "storage/system/fork_safe_mutex.hpp"

namespace shale::parallel {

namespace {

constinit detail::fork_safe_mutex counting;
static_assert(std::is_trivially_destructible_v<detail::fork_safe_mutex>);

int wanted_by_all = 0;  // the sum over all live shares
int proven = 0;         // threads that the system has been seen to start for oneTBB

// The engine's own thread, which may begin later: the pool's housekeeper.
constexpr int others = 1;

void* wait_for_all(void* all_started) {
  static_cast<std::atomic<bool>*>(all_started)->wait(false);
  return nullptr;
}

int start_and_end(int wanted) noexcept {
  const detail::blocked_signals blocked;
  std::array<pthread_t, executor::threads_max + others> started;
  std::atomic<bool> all_started = false;
  int count = 0;
  while (count < wanted && ::pthread_create(&started[static_cast<std::size_t>(count)], nullptr,
                                            wait_for_all, &all_started) == 0)
    ++count;
  all_started = true;
  all_started.notify_all();
  for (int k = 0; k < count; ++k) ::pthread_join(started[static_cast<std::size_t>(k)], nullptr);
  return count;
}

// Replaces oneTBB's limit. The control is never destroyed at exit, because engine calls may still
// run in other threads while the process ends. If oneTBB throws, the earlier limit stays.
void allow(int threads) {
  static tbb::global_control* limit = nullptr;
  auto made = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism,
                                                    static_cast<std::size_t>(threads) + 1);
  delete std::exchange(limit, made.release());
}

// oneTBB's limit includes the thread that calls it. It is the host program's limit, or the lower
// one that `allow` has set.
int allowed_by_host() {
  const std::size_t allowed =
      tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
  return static_cast<int>(std::min<std::size_t>(allowed, executor::threads_max)) - 1;
}

}  // namespace

thread_share::thread_share(int wanted) : wanted_(wanted), threads_(wanted) {
  const std::lock_guard lock(counting);
  int most = allowed_by_host();
  const int together = std::min(wanted_by_all + wanted, most);
  // All of them at once, as oneTBB may not have started those of earlier shares yet.
  if (together > proven) proven = std::max(proven, start_and_end(together + others) - others);
  if (together > proven) {
    most = proven;
    allow(most);
  }
  wanted_by_all += wanted;
  threads_ = std::min(wanted, most);
}

thread_share::~thread_share() {
  const std::lock_guard lock(counting);
  wanted_by_all -= wanted_;
}

}  // namespace shale::parallel
