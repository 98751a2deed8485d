// The outcome of a transaction that was committed without waiting.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "shale/error.hpp"
#include "storage/system/fork_handlers.hpp"

namespace shale::arrays {

/// Threads  every member may be called from any thread; one of them ends the state, once
class commit_state {
 public:
  explicit commit_state(std::uint64_t generation) noexcept : generation_(generation) {}

  std::uint64_t generation() const noexcept { return generation_; }

  bool durable() const noexcept { return now_ == outcome::durable; }

  /// Returns once the generation is durable.
  /// Throws   the error for which it failed; invalid_argument in a forked child, where nobody ends
  ///          the state
  void wait() const;

  void succeed() noexcept { end(outcome::durable); }

  /// `cause` is null if the cause was not a shale::error.
  void fail(const error* cause) noexcept;

 private:
  enum class outcome : std::uint32_t { under_way, durable, failed };

  void end(outcome ended) noexcept {
    now_ = ended;
    now_.notify_all();
  }

  const std::uint64_t generation_;
  const detail::owning_process owner_{};
  std::optional<error> cause_;  // set before `now_`
  // It is atomic, because a child that is forked while a thread waits can destroy an atomic number,
  // but not a condition variable.
  std::atomic<outcome> now_ = outcome::under_way;
};

}  // namespace shale::arrays
