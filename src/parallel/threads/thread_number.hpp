// Numbers the threads that use the engine, so that each can have memory of its own in an object
// that all of them share.
#pragma once

#include <atomic>
#include <cstdint>

#include "parallel/threads/of_thread.hpp"

namespace shale::parallel {

/// A number that no other living thread of this process has. A thread takes the smallest number
/// that is free, and keeps it until it ends. Then another thread may get the number, and sees all
/// that the earlier thread did. In a forked child the numbers of threads that exist in the parent
/// alone stay taken.
class thread_number {
 public:
  /// Numbers are less than this.
  static constexpr int count = 31;

  /// The number of the calling thread, or `count` if it has none: all are taken, there is no
  /// memory, or the thread is ending. Many threads can have `count` at the same time.
  static int of_this_thread() noexcept {
    const thread_number* const mine = of_thread<thread_number>::find();
    return mine != nullptr ? mine->number_ : count;
  }

  thread_number() noexcept;
  thread_number(const thread_number&) = delete;
  thread_number& operator=(const thread_number&) = delete;
  ~thread_number();

 private:
  static inline constinit std::atomic<std::uint32_t> taken_ = 0;  // bit k: number k

  int number_ = count;
};

}  // namespace shale::parallel
