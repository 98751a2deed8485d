// A lock for data that one thread, its owner, uses all the time and other threads seldom. The owner
// takes it with two plain memory accesses. Other threads pay with a system call that acts as a
// memory barrier on every running thread (membarrier). An atomic exchange by the owner would wait
// until all its earlier stores reach the cache: if a block has just been written, this costs more
// than the rest of an allocation.
//
// The lock is correct because both sides first announce themselves (`held_`, `wanted_`) and then
// look at the other's announcement. Without a barrier the processor could delay the owner's store
// until after its load. The membarrier call of the other side orders the two. So if both come at
// once, at least one sees the other: the owner then withdraws, and the other side waits until
// `held_` is false.
//
// A sandbox may forbid membarrier later. Owners then have to use the exchange. `stores_` says what
// they use. It changes while owners run, so an owner locks in this order:
//   1. it stores held_ = true, as a plain store
//   2. it reads `stores_`. If it reads `plain`, its store came before the change of `stores_`, and
//      the thread that changes `stores_` pauses until that store is visible. Otherwise the owner
//      exchanges `held_` as well
// The other order would be wrong. An owner that reads `plain`, and then stops for longer than the
// pause, would make a plain store that nobody waits for (biased_lock_model_test.cpp).
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace shale::detail {

/// Threads  lock, unlock: the owner; want, await, release: one other thread at a time for each
///          lock; static members: any thread
class biased_lock {
 public:
  void lock() noexcept {
    for (;;) {
      held_.store(true, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if (stores_.load(std::memory_order_relaxed) != owner_stores::plain)
        held_.exchange(true, std::memory_order_seq_cst);
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

  /// How owners announce themselves. Without membarrier, on Linux before 4.14 and in some
  /// sandboxes, they use an atomic exchange. If a sandbox comes later, `changing` is the time in
  /// which plain stores from before may still be invisible.
  enum class owner_stores : std::uint8_t { plain, changing, exchanged };

  /// For tests.
  static owner_stores stores() noexcept { return stores_.load(); }

  /// Simulates a system without membarrier (`exchanged`; call it before any lock is used), or
  /// another thread that has just found membarrier gone (`changing`); for tests.
  static void set_stores(owner_stores stores) noexcept { stores_.store(stores); }

 private:
  static inline std::atomic<owner_stores> stores_ = owner_stores::exchanged;

  std::atomic<bool> held_ = false;
  std::atomic<bool> wanted_ = false;
};

}  // namespace shale::detail
