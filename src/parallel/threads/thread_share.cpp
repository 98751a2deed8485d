#include "parallel/threads/thread_share.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <tbb/global_control.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
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
bool was_refused = false;

// The threads of the first trial: enough for the executors of most programs together. Starting them
// takes about 0.2 ms. If addresses are limited, a trial starts no more threads than are needed.
constexpr int tried_at_least = 16;

// The threads of the library that need room beside oneTBB's: the pool's housekeeper, which may
// start later and then stays. Threads of reader teams, which live during a call, are not counted.
constexpr int others = 1;

// The addresses that malloc reserves when a thread first allocates, for an arena of the thread's
// own. It gives half of them back at once. If there are not as many, malloc tries to reserve half,
// which may fail.
constexpr std::size_t malloc_arena_bytes = std::size_t{128} << 20;

bool addresses_are_limited() noexcept {
  rlimit addresses{};
  return ::getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY;
}

bool is_room_for_a_malloc_arena() noexcept {
  void* const mapped =
      ::mmap(nullptr, malloc_arena_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return mapped != MAP_FAILED && ::munmap(mapped, malloc_arena_bytes) == 0;
}

// Starts threads that all live at the same time, and then ends them.
class trial {
 public:
  // Returns how many of the wanted threads could be started.
  int run(int wanted) noexcept {
    int count = 0;
    while (count < wanted && start(count)) ++count;
    may_end_ = true;
    may_end_.notify_all();
    for (int k = 0; k < started_; ++k)
      ::pthread_join(threads_[static_cast<std::size_t>(k)], nullptr);
    return count;
  }

 private:
  // If addresses are limited, each thread allocates, and there must be room for another arena of
  // malloc after it. Then malloc has made an arena for each thread. It keeps these arenas, and
  // later threads use them again.
  bool start(int number) noexcept {
    if (::pthread_create(&threads_[static_cast<std::size_t>(number)], nullptr, body, this) != 0)
      return false;
    ++started_;
    if (!allocating_) return true;
    for (int so_far = 0; (so_far = allocated_) < started_;) allocated_.wait(so_far);
    return is_room_for_a_malloc_arena();
  }

  static void* body(void* context) {
    auto& self = *static_cast<trial*>(context);
    if (self.allocating_) {
      void* volatile const some = std::malloc(1);
      std::free(some);
      ++self.allocated_;
      self.allocated_.notify_one();
    }
    self.may_end_.wait(false);
    return nullptr;
  }

  const detail::blocked_signals blocked_{};
  const bool allocating_ = addresses_are_limited();
  std::array<pthread_t, executor::threads_max + others> threads_{};
  int started_ = 0;
  std::atomic<int> allocated_ = 0;
  std::atomic<bool> may_end_ = false;
};

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
  // The trial starts the threads of all live shares at once, because oneTBB may not have started
  // those of earlier shares yet. oneTBB may also be starting some at this moment, and it ends the
  // process if the trial leaves no room for one. So the first trial is made large enough that a
  // second one is seldom needed, and there is none after a refusal.
  if (together > proven && !was_refused) {
    const int tried =
        (addresses_are_limited() ? together : std::max(together, tried_at_least)) + others;
    const int started = trial().run(tried);
    was_refused = started < tried;
    proven = std::max(proven, started - others);
  }
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
