#include "storage/pool/biased_lock.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace shale::detail {

namespace {

bool membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

void biased_lock::catch_up() noexcept { membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED); }

void biased_lock::prepare() noexcept {
  others_catch_us_up_.store(membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED),
                            std::memory_order_relaxed);
}

}  // namespace shale::detail
