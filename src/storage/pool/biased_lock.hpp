// The lock of what one thread uses all the time and others look at now and then. Its owner takes it
// by two plain accesses; the others pay with a system call that makes every running thread catch up
// (membarrier). An atomic exchange in the owner's path would wait for all stores before it to reach
// the caches: more than the rest of an allocation, when a block has just been written.
#pragma once

#include <sched.h>

#include <atomic>

namespace shale::detail {

/// Threads  lock, unlock: the owner; the rest: any other thread, one at a time over all locks
class biased_lock {
 public:
  void lock() noexcept {
    for (;;) {
      if (others_catch_us_up_.load(std::memory_order_relaxed)) {
        held_.store(true, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
      } else {
        held_.exchange(true, std::memory_order_seq_cst);
      }
      if (!wanted_.load(std::memory_order_acquire)) return;
      held_.store(false, std::memory_order_release);
      while (wanted_.load(std::memory_order_acquire)) ::sched_yield();
    }
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

  /// Taking some from outside: want all of them, `catch_up` once, await each.
  void want() noexcept { wanted_.exchange(true, std::memory_order_seq_cst); }
  void await() const noexcept {
    while (held_.load(std::memory_order_acquire)) ::sched_yield();
  }
  void release() noexcept { wanted_.store(false, std::memory_order_release); }

  /// What owners stored before is seen by the caller.
  static void catch_up() noexcept;

  /// Must have been called in this process before any lock is used, also in a child of fork().
  static void prepare() noexcept;

  /// Whether owners pay for an exchange, as membarrier is missing; for tests.
  static bool owners_pay() noexcept { return !others_catch_us_up_.load(std::memory_order_relaxed); }

  /// As on a system without membarrier, before any lock is used; for tests.
  static void do_without_membarrier() noexcept {
    others_catch_us_up_.store(false, std::memory_order_relaxed);
  }

 private:
  // Without membarrier (Linux before 4.14, some sandboxes) owners pay for the exchange.
  static inline std::atomic<bool> others_catch_us_up_ = false;

  std::atomic<bool> held_ = false;
  std::atomic<bool> wanted_ = false;
};

}  // namespace shale::detail
