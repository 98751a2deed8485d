#include "storage/pool/caches/biased_lock.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace shale::detail {

namespace {

bool membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

void biased_lock::fence_all_threads() noexcept {
  if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  owner_stores before = owner_stores::plain;
  stores_.compare_exchange_strong(before, owner_stores::changing);
  if (before == owner_stores::exchanged) return;
  // membarrier no longer works, because a sandbox forbids it. From now on owners use the atomic
  // exchange. The pause lets their earlier plain stores become visible, which takes a processor
  // less than a microsecond, and a switch to another thread does it at once. A thread that finds
  // another one pausing pauses itself too, because it may wait for other owners.
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  stores_.store(owner_stores::exchanged);
}

void biased_lock::prepare() noexcept {
  stores_.store(membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) ? owner_stores::plain
                                                                      : owner_stores::exchanged);
}

}  // namespace shale::detail
