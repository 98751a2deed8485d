// Counts how much of an executor's memory budget is in use.
#pragma once

#include <atomic>
#include <cstddef>

namespace shale::parallel {

/// The bytes of a budget that running calls hold, and those of chunks that are kept decoded. A call
/// sizes its windows by the bytes that are left, and records what it takes. No call ever waits for
/// bytes, so nested and concurrent calls cannot block each other; together they may exceed the
/// budget by the size of small windows.
/// Threads  any, at any time
class memory_tokens {
 public:
  explicit memory_tokens(std::size_t budget_bytes) noexcept : budget_bytes_(budget_bytes) {}

  std::size_t budget_bytes() const noexcept { return budget_bytes_; }

  /// The budget minus the bytes that are held; 0 if more are held.
  std::size_t left_bytes() const noexcept;
  std::size_t held_bytes() const noexcept;
  void take(std::size_t bytes) noexcept;

  /// Takes as many of `bytes` as are left, and returns how many.
  std::size_t take_at_most(std::size_t bytes) noexcept;
  void give(std::size_t bytes) noexcept;
  std::size_t peak_bytes() const noexcept { return peak_bytes_.load(std::memory_order_relaxed); }

 private:
  void note_peak(std::size_t held) noexcept;

  const std::size_t budget_bytes_;
  std::atomic<std::size_t> held_bytes_ = 0;
  std::atomic<std::size_t> peak_bytes_ = 0;
};

/// Holds `bytes` of a budget for its lifetime.
class held_tokens {
 public:
  held_tokens(memory_tokens& from, std::size_t bytes) : from_(from), bytes_(bytes) {
    from_.take(bytes_);
  }
  ~held_tokens() { from_.give(bytes_); }
  held_tokens(const held_tokens&) = delete;
  held_tokens& operator=(const held_tokens&) = delete;

 private:
  memory_tokens& from_;
  std::size_t bytes_;
};

}  // namespace shale::parallel
