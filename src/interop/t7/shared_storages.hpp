// The storages of a file that have been read, so that tensors share them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "shale/storage.hpp"
#include "storage/system/fork_safe_mutex.hpp"

namespace shale::interop::t7 {

/// Holds at most as many storages that nobody uses as there are others, and one more.
/// Threads  safe. Two threads that want one storage at the same time may both read it; both get the
///          same
class shared_storages {
 public:
  /// The storage of an object: the one that exists, or else what `read` returns.
  /// Throws   what `read` throws; bad_alloc
  template <class Read>
  storage get(std::size_t place, Read&& read) {
    if (storage known = find(place)) return known;
    release_unused();
    return keep(place, read());
  }

 private:
  storage find(std::size_t place) {
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(place);
    return found == held_.end() ? storage() : found->second;
  }

  storage keep(std::size_t place, storage made) {
    const std::lock_guard lock(mutex_);
    return held_.try_emplace(place, std::move(made)).first->second;
  }

  // Looks through all only when their number has doubled, so that many reads take linear time.
  void release_unused() {
    std::vector<storage> unused;  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    if (held_.size() < looked_at_) return;
    unused.reserve(held_.size());
    for (auto at = held_.begin(); at != held_.end();) {
      if (at->second.use_count() > 1) {
        ++at;
        continue;
      }
      unused.push_back(std::move(at->second));
      at = held_.erase(at);
    }
    looked_at_ = 2 * held_.size() + 1;
  }

  detail::fork_safe_mutex mutex_;
  std::map<std::size_t, storage> held_;
  std::size_t looked_at_ = 1;  // the number of storages at which they are looked through
};

}  // namespace shale::interop::t7
