// Repeats a check of the page cache, because the system may change the cache at any time. It evicts
// pages when it needs memory, and it keeps pages that it is about to move. Some machines also page
// out physical memory that was idle for a minute (Linux's DAMON, seen as a thread "kdamond"). A
// page that was just read into such memory may be evicted at once, and no counter of /proc/vmstat
// shows it.
#pragma once

#include <chrono>
#include <thread>

namespace shale::test {

// Whether one of a few calls of `attempt` returns true. Wrong code fails in every call; the system
// interferes only in some of them.
template <class Attempt>
bool holds_once(const Attempt& attempt) {
  for (int calls = 0; calls < 8; ++calls) {
    if (calls > 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (attempt()) return true;
  }
  return false;
}

}  // namespace shale::test
