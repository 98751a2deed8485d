// A lock that no thread waits for.
#pragma once

#include <atomic>

#include "storage/system/fork_handlers.hpp"

namespace shale::parallel {

/// One thread at a time can hold it, and other threads do not wait for it. So its holder may call
/// foreign code without a risk of deadlock. In a forked child it is free even if another thread of
/// the parent held it. That thread may have been in the middle of a change there, so the turn must
/// guard nothing that the child uses.
class single_turn {
 public:
  bool try_lock() noexcept {
    const unsigned own_process = detail::fork_generation() + 1;
    unsigned holder = holder_.load(std::memory_order_relaxed);
    return holder != own_process &&
           holder_.compare_exchange_strong(holder, own_process, std::memory_order_acquire);
  }
  void unlock() noexcept { holder_.store(0, std::memory_order_release); }

 private:
  std::atomic<unsigned> holder_ = 0;  // 1 + the generation of the holder's process; 0: free
};

}  // namespace shale::parallel
