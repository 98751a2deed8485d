// A lock that no thread waits for.
#pragma once

#include <atomic>

namespace shale::parallel {

/// One thread at a time can hold it, and other threads do not wait for it. So its holder may call
/// foreign code without a risk of deadlock.
class single_turn {
 public:
  bool try_lock() noexcept { return !taken_.exchange(true, std::memory_order_acquire); }
  void unlock() noexcept { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_ = false;
};

}  // namespace shale::parallel
