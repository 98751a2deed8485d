// What an executor owns: the arena, the budget, the counters.
#pragma once

#include <tbb/task_arena.h>

#include <atomic>
#include <mutex>

#include "shale/executor.hpp"
#include "shale/memory_pool.hpp"

namespace shale {

namespace parallel {

/// Bytes that calls hold of a budget. Nothing ever waits here, so that nested and concurrent calls
/// cannot block each other: a call sizes its windows by what is left and says what it took.
class memory_tokens {
 public:
  explicit memory_tokens(std::size_t budget_bytes) noexcept : budget_bytes_(budget_bytes) {}

  std::size_t budget_bytes() const noexcept { return budget_bytes_; }

  /// The budget less what calls hold; 0 if they hold more.
  std::size_t left_bytes() const noexcept;
  std::size_t held_bytes() const noexcept;
  void take(std::size_t bytes) noexcept;
  void give(std::size_t bytes) noexcept;
  std::size_t peak_bytes() const noexcept { return peak_bytes_.load(std::memory_order_relaxed); }

 private:
  const std::size_t budget_bytes_;
  std::atomic<std::size_t> held_bytes_ = 0;
  std::atomic<std::size_t> peak_bytes_ = 0;
};

/// Tokens held by a scope.
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

}  // namespace parallel

struct executor::implementation {
  explicit implementation(const executor_options& options);

  const int threads;
  progress_sink* const progress;
  std::mutex progress_mutex;  // the sink hears one call at a time
  parallel::memory_tokens tokens;
  tbb::task_arena arena;  // started by its first use
  std::atomic<bool> cancelled = false;

  struct counters {
    std::atomic<std::uint64_t> calls = 0;
    std::atomic<std::uint64_t> tiles = 0;
    std::atomic<std::uint64_t> bytes_read = 0;
    std::atomic<std::uint64_t> bytes_written = 0;
    std::atomic<std::uint64_t> windows = 0;
    std::atomic<std::uint64_t> windows_dropped = 0;
    std::atomic<std::uint64_t> mapped_tiles = 0;
    std::atomic<std::uint64_t> tiles_decoded = 0;
    std::atomic<std::uint64_t> stored_bytes_read = 0;
  } count;
};

namespace parallel {

/// What a call may hold of mappings, for as long as it runs: out of the executor's budget and of
/// the pool's limit, so that windows and temporaries share both. What lies idle in the pool makes
/// room.
class window_memory {
 public:
  /// Takes what is left of `wanted_bytes`, perhaps nothing.
  window_memory(executor& on, std::size_t wanted_bytes);
  ~window_memory();
  window_memory(const window_memory&) = delete;
  window_memory& operator=(const window_memory&) = delete;

  std::size_t bytes() const noexcept { return bytes_; }

 private:
  memory_tokens& tokens_;
  std::size_t bytes_;
  memory_pool::reservation reserved_;
};

/// The executor to use for a call that was given `on`.
inline executor& choose(executor* on) { return on ? *on : executor::shared(); }

}  // namespace parallel
}  // namespace shale
