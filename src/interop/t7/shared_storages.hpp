// The storages of a file that have been read, so that tensors share them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "shale/storage.hpp"
#include "storage/system/fork_safe_mutex.hpp"

namespace shale::interop::t7 {

/// Files have tensors of several storages in turns, so this keeps storages that nobody uses for
/// later calls: those that were asked for last, up to a number of bytes, and up to `unused_max`
/// storages. It may keep more: as many as were in use when all storages were last examined.
/// Threads  safe. Two threads that want one storage at the same time may both read it; both get the
///          same storage
class shared_storages {
 public:
  /// The storage of an object: the one that exists, or else the result of `read`. Before `read` is
  /// called, the storages that nobody uses are reduced to about `unused_bytes_max`.
  /// Throws   what `read` throws; bad_alloc
  template <class Read>
  storage get(std::size_t place, std::size_t unused_bytes_max, Read&& read) {
    if (storage known = find(place)) return known;
    release_unused(unused_bytes_max);
    return keep(place, read());
  }

 private:
  static constexpr std::size_t unused_max = 1024;

  struct kept {
    storage bytes;
    std::uint64_t turn;  // grows with each call that asks for it
  };
  using places = std::map<std::size_t, kept>;

  // Mapped bytes belong to the file and do not count.
  static std::size_t memory_of(const storage& bytes) noexcept {
    return bytes.kind() == storage_kind::file ? 0 : bytes.size_bytes();
  }

  storage find(std::size_t place) {
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(place);
    if (found == held_.end()) return {};
    found->second.turn = ++turns_;
    return found->second.bytes;
  }

  storage keep(std::size_t place, storage made) {
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] = held_.try_emplace(place, kept{std::move(made), ++turns_});
    if (is_new) held_bytes_ += memory_of(at->second.bytes);
    return at->second.bytes;
  }

  // Examines all storages only when about as many have been added as are examined, so that many
  // reads take linear time. It keeps half of what may be unused, and releases the oldest storages.
  void release_unused(std::size_t bytes_max) {
    std::vector<storage> released;  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    if (held_.size() < 2 * used_ + unused_max && held_bytes_ <= 2 * used_bytes_ + bytes_max) return;
    std::vector<places::iterator> unused;
    for (auto at = held_.begin(); at != held_.end(); ++at)
      if (at->second.bytes.use_count() == 1) unused.push_back(at);
    std::sort(unused.begin(), unused.end(),
              [](auto a, auto b) { return a->second.turn > b->second.turn; });
    released.reserve(unused.size());
    std::size_t kept_bytes = 0;
    std::size_t kept_count = 0;
    for (const auto at : unused) {
      const std::size_t bytes = memory_of(at->second.bytes);
      if (kept_count < unused_max / 2 && bytes <= bytes_max / 2 - kept_bytes) {
        kept_bytes += bytes;
        ++kept_count;
        continue;
      }
      held_bytes_ -= bytes;
      released.push_back(std::move(at->second.bytes));
      held_.erase(at);
    }
    used_ = held_.size() - kept_count;
    used_bytes_ = held_bytes_ - kept_bytes;
  }

  detail::fork_safe_mutex mutex_;
  places held_;
  std::uint64_t turns_ = 0;
  std::size_t held_bytes_ = 0;
  std::size_t used_ = 0;        // the storages in use when all were last examined
  std::size_t used_bytes_ = 0;  // their bytes
};

}  // namespace shale::interop::t7
