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
  // membarrier no longer works, because a sandbox forbids it. From now on owners use the atomic
  // exchange. The pause lets their earlier plain stores become visible, which takes a processor
  // less than a microsecond.
  if (has_membarrier_.exchange(false)) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

void biased_lock::prepare() noexcept {
  has_membarrier_.store(membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED),
                        std::memory_order_relaxed);
}

}  // namespace shale::detail
