// A lock for data that one thread, its owner, uses all the time and other threads seldom. The owner
// takes it with two plain memory accesses. Other threads pay with a system call that acts as a
// memory barrier on every running thread (membarrier). An atomic exchange by the owner would wait
// until all its earlier stores reach the cache: if a block has just been written, this costs more
// than the rest of an allocation.
//
// Why it is right: both sides first announce themselves (`held_`, `wanted_`) and then look at the
// other's announcement. Without a barrier the processor could delay the owner's store until after
// its load. The membarrier call of the other side orders the two. So if both come at once, at least
// one sees the other: the owner then withdraws, and the other side waits until `held_` is false.
#pragma once

#include <sched.h>

#include <atomic>

namespace shale::detail {

/// Threads  lock, unlock: the owner; other members: any other thread, one at a time for all locks
///          together
class biased_lock {
 public:
  void lock() noexcept {
    for (;;) {
      if (has_membarrier_.load(std::memory_order_relaxed)) {
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

  /// To take locks from another thread: call `want` on all of them, `fence_all_threads` once, then
  /// `await` on each.
  void want() noexcept { wanted_.exchange(true, std::memory_order_seq_cst); }
  void await() const noexcept {
    while (held_.load(std::memory_order_acquire)) ::sched_yield();
  }
  void release() noexcept { wanted_.store(false, std::memory_order_release); }

  /// Makes earlier stores of the owners visible to the caller: if owners use plain stores, by a
  /// memory barrier in every running thread of the process.
  static void fence_all_threads() noexcept;

  /// Must be called in a process before any lock is used, also in a child of fork().
  static void prepare() noexcept;

  /// Whether owners use an atomic exchange because membarrier is missing; for tests.
  static bool owners_exchange() noexcept {
    return !has_membarrier_.load(std::memory_order_relaxed);
  }

  /// Simulates a system without membarrier. Call it before any lock is used; for tests.
  static void do_without_membarrier() noexcept {
    has_membarrier_.store(false, std::memory_order_relaxed);
  }

 private:
  // False on Linux before 4.14 and in some sandboxes. Owners then use the atomic exchange.
  static inline std::atomic<bool> has_membarrier_ = false;

  std::atomic<bool> held_ = false;
  std::atomic<bool> wanted_ = false;
};

}  // namespace shale::detail
