// Keeps forks apart from allocations where the allocator cannot stand a fork.
#pragma once

#include <mutex>

namespace shale::test {

/// Held while one thread forks, or while another allocates. AddressSanitizer's allocator has no fork
/// handlers before LLVM 17: a child may inherit its locks from another thread, and wait for ever. In
/// other builds this locks nothing, so that forks come at any moment.
inline std::unique_lock<std::mutex> turn_to_allocate() {
#if defined(__SANITIZE_ADDRESS__)
  static std::mutex turns;
  return std::unique_lock(turns);
#else
  return {};
#endif
}

}  // namespace shale::test
