// The lock of what one thread owns and others look at now and then: one atomic exchange to take it,
// a store to give it back. A std::mutex costs an exchange more, a quarter of a cached allocation.
#pragma once

#include <sched.h>

#include <atomic>

namespace shale::detail {

class owned_lock {
 public:
  void lock() noexcept {
    while (taken_.exchange(true, std::memory_order_acquire))
      while (taken_.load(std::memory_order_relaxed)) ::sched_yield();
  }
  void unlock() noexcept { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_ = false;
};

}  // namespace shale::detail
