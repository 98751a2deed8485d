// Ends forked children that would go on with a call which they share with threads of their parent.
//
// A kernel, a tile source or a progress sink may fork. The child has only the thread that forked:
// tiles that other threads were working on never end there, and locks that they held stay locked.
// If the function returned into the engine, the child would wait for them for ever. An exception
// would not help, because on its way it destroys objects that wait for the same threads. And the
// thread may be a helper, which has no caller in the child.
#pragma once

#include <cstdint>
#include <utility>

#include "storage/system/fork_handlers.hpp"

namespace shale::parallel {

/// Marks what the calling thread does as work that it shares with other threads of the engine, from
/// construction to destruction.
/// Threads  an object belongs to the thread that made it; objects of one thread are destroyed in
///          reverse order
class shared_work {
 public:
  shared_work() noexcept : outer_(std::exchange(mark(), mark_of(detail::fork_generation()))) {}
  ~shared_work() { mark() = outer_; }
  shared_work(const shared_work&) = delete;
  shared_work& operator=(const shared_work&) = delete;

  /// Whether the calling thread is inside shared work, of this process or of one that forked it.
  static bool inside() noexcept { return mark() != 0; }

  /// Whether the innermost shared work was begun by the process of that number of forks.
  static bool inside_of(unsigned generation) noexcept { return mark() == mark_of(generation); }

 private:
  static std::uint64_t mark_of(unsigned generation) noexcept {
    return std::uint64_t{generation} + 1;
  }
  static std::uint64_t& mark() noexcept {
    static thread_local std::uint64_t marked = 0;
    return marked;
  }

  const std::uint64_t outer_;
};

/// Lives while the engine calls a foreign function. If the function returns, or throws, in a child
/// that it forked, and the thread is inside shared work of the process that called the function,
/// the destructor ends the child by SIGABRT, with a message on standard error. If the shared work
/// was begun by an ancestor of that process, the process's own call has no other threads, and the
/// child may go on. A child that was made without the handlers of fork is not noticed.
class foreign_call {
 public:
  foreign_call() noexcept : generation_(detail::fork_generation()) {}
  ~foreign_call() {
    if (detail::fork_generation() != generation_ && shared_work::inside_of(generation_))
      end_child();
  }
  foreign_call(const foreign_call&) = delete;
  foreign_call& operator=(const foreign_call&) = delete;

 private:
  [[noreturn]] static void end_child() noexcept;

  const unsigned generation_;
};

}  // namespace shale::parallel
