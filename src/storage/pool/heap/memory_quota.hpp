// Counts the bytes that a pool holds from the system, and those that are reserved for others, and
// compares them with its limit.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <limits>

namespace shale::detail {

/// Threads  every member may be called from any thread
class memory_quota {
 public:
  explicit memory_quota(std::size_t limit_bytes) noexcept : limit_bytes_(limit_bytes) {}

  /// Counts `bytes` more and returns true, unless that would exceed the limit.
  bool take(std::size_t bytes) noexcept {
    const std::size_t limit = limit_or(std::numeric_limits<std::size_t>::max());
    std::size_t held = held_bytes_.load(std::memory_order_relaxed);
    do {
      if (held > limit || bytes > limit - held) return false;
    } while (!held_bytes_.compare_exchange_weak(held, held + bytes, std::memory_order_relaxed));
    return true;
  }

  void give(std::size_t bytes) noexcept { held_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

  /// Reserves as many of `bytes` as fit in the limit and returns that number. They count as held.
  /// Without a limit, half of the largest countable number is the limit, which is more than any
  /// machine's memory.
  std::size_t reserve_up_to(std::size_t bytes) noexcept {
    const std::size_t limit = limit_or(std::numeric_limits<std::size_t>::max() / 2);
    std::size_t held = held_bytes_.load(std::memory_order_relaxed);
    std::size_t taken = 0;
    do {
      taken = std::min(bytes, limit - std::min(held, limit));
    } while (!held_bytes_.compare_exchange_weak(held, held + taken, std::memory_order_relaxed));
    reserved_bytes_.fetch_add(taken, std::memory_order_relaxed);
    return taken;
  }
  void end_reservation(std::size_t bytes) noexcept {
    reserved_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    give(bytes);
  }

  /// With the reserved bytes.
  std::size_t held_bytes() const noexcept { return held_bytes_.load(std::memory_order_relaxed); }
  std::size_t reserved_bytes() const noexcept {
    return reserved_bytes_.load(std::memory_order_relaxed);
  }

  /// The limit; 0 means none.
  std::size_t limit_bytes() const noexcept { return limit_bytes_.load(std::memory_order_relaxed); }
  void set_limit_bytes(std::size_t bytes) noexcept {
    limit_bytes_.store(bytes, std::memory_order_relaxed);
  }

 private:
  std::size_t limit_or(std::size_t none) const noexcept {
    const std::size_t limit = limit_bytes();
    return limit == 0 ? none : limit;
  }

  std::atomic<std::size_t> limit_bytes_;
  std::atomic<std::size_t> held_bytes_ = 0;
  std::atomic<std::size_t> reserved_bytes_ = 0;
};

}  // namespace shale::detail
