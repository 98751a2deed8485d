// Keeps forks apart from allocations where the allocator cannot stand a fork.
#pragma once

#include <latch>
#include <mutex>
#include <thread>
#include <utility>

namespace shale::test {

/// Held while one thread forks, or while another allocates. AddressSanitizer's allocator has no
/// fork handlers before LLVM 17: a child may inherit its locks from another thread, and wait for
/// ever. In other builds this locks nothing, so that forks come at any moment.
inline std::unique_lock<std::mutex> turn_to_allocate() {
#if defined(__SANITIZE_ADDRESS__)
  static std::mutex turns;
  return std::unique_lock(turns);
#else
  return {};
#endif
}

/// Starts a thread, and returns when it runs: AddressSanitizer allocates while a thread starts, and
/// that thread cannot have taken its turn yet.
template <class Body>
std::jthread running_thread(Body body) {
  std::latch runs(1);
  std::jthread made([&runs, body = std::move(body)] {
    runs.count_down();
    body();
  });
  runs.wait();
  return made;
}

}  // namespace shale::test
