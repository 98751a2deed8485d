#include "parallel/windows/window_memory.hpp"

#include <algorithm>

#include "shale/executor.hpp"

namespace shale::parallel {

window_memory::window_memory(executor& on, std::size_t wanted_bytes)
    : tokens_(parallel::state_of(on).tokens),
      reserved_(on.pool().reserve(std::min(wanted_bytes, tokens_.left_bytes()))),
      bytes_(tokens_.take_at_most(reserved_.bytes())) {
  memory_pool& pool = on.pool();
  if (pool.statistics().idle_bytes + tokens_.held_bytes() > tokens_.budget_bytes()) pool.trim();
}

window_memory::~window_memory() { tokens_.give(bytes_); }

}  // namespace shale::parallel
