// The caches of all threads of one pool, and holding them all still.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "storage/pool/thread_cache.hpp"

namespace shale::detail {

/// Threads  each thread uses its own cache under that cache's lock; the rest may be called from any
class thread_caches {
 public:
  thread_cache& add() {
    const std::lock_guard lock(lock_);
    caches_.push_back(std::make_unique<thread_cache>());
    return *caches_.back();
  }

  /// Keeps every thread out of its cache, and everybody else from holding them. Costs a system call
  /// (membarrier, some microseconds).
  class hold {
   public:
    explicit hold(thread_caches& which) : lock_(which.lock_), caches_(which.caches_) {
      for (const auto& each : caches_) each->lock.want();
      biased_lock::catch_up();
      for (const auto& each : caches_) each->lock.await();
    }
    ~hold() {
      for (const auto& each : caches_) each->lock.release();
    }
    hold(const hold&) = delete;
    hold& operator=(const hold&) = delete;

    auto begin() const noexcept { return caches_.begin(); }
    auto end() const noexcept { return caches_.end(); }

    /// The cache of a thread that ends.
    void remove(const thread_cache& gone) noexcept {
      std::erase_if(caches_, [&](const auto& each) { return each.get() == &gone; });
    }

   private:
    const std::lock_guard<std::mutex> lock_;
    std::vector<std::unique_ptr<thread_cache>>& caches_;
  };

 private:
  std::mutex lock_;
  std::vector<std::unique_ptr<thread_cache>> caches_;
};

}  // namespace shale::detail
