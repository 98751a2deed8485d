#include "storage/system/fork_safe_mutex.hpp"

#include <atomic>

#include "storage/system/fork_handlers.hpp"

namespace shale::detail {

namespace {

// A lock of the C library cannot be used here: the thread that took it in the parent cannot release
// it in the child, where that thread has another number.
constinit std::atomic<int> threads_inside = 0;
constinit std::atomic<int> closed = 0;  // 1 while a thread waits to fork, or forks

constinit thread_local int depth = 0;  // of the sections that this thread is in

// A thread that comes counts itself before it looks, and a thread that forks closes before it looks
// at the count. So at least one of the two sees the other.
void close() {
  closed = 1;
  if (depth == 0)
    for (int inside = threads_inside; inside > 0; inside = threads_inside)
      threads_inside.wait(inside);
  ++depth;  // the handlers of the other parts enter sections
}

void reopen() {
  --depth;
  closed = 0;
  closed.notify_all();
}

// A thread that met the closed gate may have been counted in `threads_inside` when the process was
// copied.
void reopen_in_child() {
  threads_inside = depth > 1 ? 1 : 0;
  reopen();
}

constexpr fork_handlers handlers{close, reopen, reopen_in_child};
[[maybe_unused]] const int registered_at_load = on_fork(forking_part::critical_sections, handlers);

void uncount() noexcept {
  --threads_inside;
  if (closed != 0) threads_inside.notify_all();
}

}  // namespace

void critical_section::enter() noexcept {
  if (depth++ > 0) return;
  for (;;) {
    ++threads_inside;
    if (closed == 0) return;
    uncount();
    closed.wait(1);
  }
}

void critical_section::leave() noexcept {
  if (--depth == 0) uncount();
}

}  // namespace shale::detail
