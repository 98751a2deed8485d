// A lock for work that may take long: `fork` does not wait for the thread that holds it.
#pragma once

#include <atomic>

#include "storage/system/fork_handlers.hpp"

namespace shale::detail {

/// Meets the standard's requirements of BasicLockable. In a forked child it is free even if another
/// thread of the parent held it. That thread may have been anywhere in its work. So the state that
/// others see must be consistent at every moment: a holder changes it inside a `critical_section`,
/// or with a `fork_safe_mutex`.
/// Threads  one at a time holds it, the others wait. A thread must not hold a `fork_safe_mutex`
///          when it calls `lock`: a thread that forks would wait for the long work after all
class long_turn {
 public:
  long_turn() noexcept = default;
  long_turn(const long_turn&) = delete;
  long_turn& operator=(const long_turn&) = delete;

  void lock() noexcept {
    const unsigned own_process = fork_generation() + 1;
    for (unsigned holder = holder_.load(std::memory_order_relaxed);;) {
      if (holder == own_process) {
        holder_.wait(holder, std::memory_order_relaxed);
        holder = holder_.load(std::memory_order_relaxed);
      } else if (holder_.compare_exchange_weak(holder, own_process, std::memory_order_acquire,
                                               std::memory_order_relaxed)) {
        return;
      }
    }
  }

  void unlock() noexcept {
    // Sequentially consistent: libstdc++ makes no system call if nobody waits, and a processor may
    // otherwise look for waiting threads before they can see the store.
    holder_.store(0, std::memory_order_seq_cst);
    holder_.notify_one();
  }

 private:
  std::atomic<unsigned> holder_ = 0;  // 1 + the generation of the holder's process; 0: free
};

}  // namespace shale::detail
