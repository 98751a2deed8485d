// What a call does to the page cache, beside a system that takes pages away when it needs memory,
// and keeps pages that it is about to move. Some machines also page out physical memory that was
// idle for a minute (Linux's DAMON, seen as a thread "kdamond"): a page that was just read into
// such memory may go at once, and no counter of /proc/vmstat tells.
#ifndef SHALE_TESTS_SUPPORT_HOLDS_ONCE_HPP
#define SHALE_TESTS_SUPPORT_HOLDS_ONCE_HPP

#include <chrono>
#include <thread>

namespace shale::test {

// Whether one of a few calls of `attempt` returns true. A call that does the wrong thing does it
// each time; the system disturbs now and then.
template <class Attempt>
bool holds_once(const Attempt& attempt) {
  for (int calls = 0; calls < 8; ++calls) {
    if (calls > 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (attempt()) return true;
  }
  return false;
}

}  // namespace shale::test

#endif
