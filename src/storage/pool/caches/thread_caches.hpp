// The caches of all threads of one pool, and a way to lock all of them.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "storage/pool/caches/thread_cache.hpp"

namespace shale::detail {

/// Threads  each thread uses its own cache under that cache's lock; other members may be called
///          from any thread
class thread_caches {
 public:
  thread_cache& add() {
    const std::lock_guard lock(lock_);
    caches_.push_back(std::make_unique<thread_cache>());
    return *caches_.back();
  }

  /// While it lives, no thread can use its cache, and no other hold exists. Costs a system call
  /// (membarrier, some microseconds).
  class hold {
   public:
    explicit hold(thread_caches& all) : lock_(all.lock_), caches_(all.caches_) {
      for (const auto& cache : caches_) cache->lock.want();
      biased_lock::fence_all_threads();
      for (const auto& cache : caches_) cache->lock.await();
    }
    ~hold() {
      for (const auto& cache : caches_) cache->lock.release();
    }
    hold(const hold&) = delete;
    hold& operator=(const hold&) = delete;

    auto begin() const noexcept { return caches_.begin(); }
    auto end() const noexcept { return caches_.end(); }

    /// Removes the cache of a thread that ends.
    void remove(const thread_cache& gone) noexcept {
      std::erase_if(caches_, [&](const auto& cache) { return cache.get() == &gone; });
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
