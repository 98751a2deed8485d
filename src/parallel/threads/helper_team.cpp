#include "parallel/threads/helper_team.hpp"

#include <algorithm>

#include "parallel/threads/arena_tasks.hpp"
#include "storage/faults/fault_guard.hpp"

namespace shale::parallel {

namespace {

// The most tasks that a caller, or a helper that joins, starts at a time. Each task starts more, so
// a caller need not start hundreds of tasks before it begins its own work.
constexpr int tasks_at_a_time = 2;

// How often a caller checks whether the last helper has left before it goes to sleep. The checks
// take about as long as falling asleep and waking up.
constexpr int looks_before_sleep = 300;

// Kernels may load from mapped files. If a file is truncated meanwhile, a thread that blocks SIGBUS
// is killed before the engine's handler runs. oneTBB's threads inherit the signal mask of the
// thread that starts them, which may block it.
void unblock_once() {
  static thread_local const bool unblocked = (detail::unblock_fault_signal(), true);
  (void)unblocked;
}

void pause_briefly() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace

// ---- the caller's side --------------------------------------------------------------------------

helper_team::open_call::open_call(helper_team& team, tbb::task_arena& arena, int places,
                                  void (*work)(void*, int), void* context) noexcept
    : team_(team), arena_(arena), work_(work), context_(context), places_{.vacant = places} {
  int tasks = 0;
  {
    const std::lock_guard lock(team_.mutex_);
    if (places > 0) team_.calls_.add(*this);
    tasks = team_.claim_tasks();
  }
  team_.start_tasks(arena_, tasks);
}

void helper_team::open_call::close() noexcept {
  {
    const std::lock_guard lock(team_.mutex_);
    if (places_.in_ring) team_.calls_.remove(*this);
    places_.vacant = 0;
    if (inside_.load(std::memory_order_relaxed) == 0) return;
  }
  for (int look = 0; look < looks_before_sleep; ++look) {
    if (inside_.load(std::memory_order_relaxed) == 0) break;
    pause_briefly();
  }
  // The lock is taken even if all helpers have left. The last helper holds it as long as it touches
  // the call, so the call may be destroyed only after the caller has had the lock.
  std::unique_lock lock(team_.mutex_);
  caller_waits_ = true;
  left_.wait(lock, [&] { return inside_.load(std::memory_order_relaxed) == 0; });
}

// ---- the helpers' side --------------------------------------------------------------------------

void helper_team::release() noexcept {
  if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

// Returns how many tasks the calling thread has to start: one for each free place without a coming
// task, within the limits.
int helper_team::claim_tasks() noexcept {
  const int wanted =
      std::min({calls_.free_places() - coming_, helpers_max_ - tasks_, tasks_at_a_time});
  if (wanted <= 0) return 0;
  tasks_ += wanted;
  coming_ += wanted;
  return wanted;
}

void helper_team::start_tasks(tbb::task_arena& arena, int count) noexcept {
  if (count > 0) entrance_.hand_over(arena, count, &helper_team::help, *this);
}

void helper_team::task_entrance::hand_over(tbb::task_arena& arena, int count, void (*body)(void*),
                                           helper_team& team) noexcept {
  const std::lock_guard lock(entering_);
  for (; count > 0 && !failed(); --count) {
    team.users_.fetch_add(1, std::memory_order_release);
    try {
      enqueue(arena, body, &team);
    } catch (...) {
      // The call continues with fewer helpers. It is unknown whether the arena has got the task,
      // which may begin later or never, so the task stays counted as a user of the team.
      failed_.store(true, std::memory_order_relaxed);
    }
  }
}

void helper_team::help(void* team) noexcept {
  auto* const self = static_cast<helper_team*>(team);
  // ThreadSanitizer does not see the ordering inside oneTBB. This load makes it see that the team
  // was constructed before the task began.
  (void)self->users_.load(std::memory_order_acquire);
  self->help_open_calls();
  self->release();
}

void helper_team::help_open_calls() noexcept {
  unblock_once();
  std::unique_lock lock(mutex_);
  --coming_;
  while (!calls_.empty()) {
    open_call& call = calls_.take_place();
    const int number = call.places_.taken;
    const int more = claim_tasks();
    lock.unlock();
    start_tasks(call.arena_, more);
    call.work_(call.context_, number);
    lock.lock();
    // `work` returns only if the call has no work left, so no other helper needs to join.
    if (call.places_.in_ring) calls_.remove(call);
    if (call.inside_.fetch_sub(1, std::memory_order_relaxed) == 1 && call.caller_waits_)
      call.left_.notify_one();
  }
  --tasks_;
}

// ---- the ring -----------------------------------------------------------------------------------

helper_team::open_call& helper_team::call_ring::take_place() noexcept {
  open_call& call = *first_;
  ++call.places_.taken;
  call.inside_.fetch_add(1, std::memory_order_relaxed);
  --free_places_;
  if (--call.places_.vacant == 0) remove(call);
  else first_ = call.places_.next;
  return call;
}

void helper_team::call_ring::add(open_call& call) noexcept {
  auto& [vacant, taken, in_ring, next, previous] = call.places_;
  if (first_ == nullptr) {
    next = previous = first_ = &call;
  } else {
    next = first_;
    previous = first_->places_.previous;
    previous->places_.next = next->places_.previous = &call;
  }
  in_ring = true;
  free_places_ += vacant;
}

void helper_team::call_ring::remove(open_call& call) noexcept {
  auto& [vacant, taken, in_ring, next, previous] = call.places_;
  free_places_ -= vacant;
  in_ring = false;
  if (next == &call) {
    first_ = nullptr;
    return;
  }
  previous->places_.next = next;
  next->places_.previous = previous;
  if (first_ == &call) first_ = next;
}

}  // namespace shale::parallel
