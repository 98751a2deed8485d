#include "parallel/windows/window_memory.hpp"

#include <algorithm>

#include "shale/executor.hpp"

namespace shale::parallel {

window_memory::window_memory(executor& on, std::size_t wanted_bytes)
    : tokens_(parallel::state_of(on).tokens), bytes_(std::min(wanted_bytes, tokens_.left_bytes())) {
  tokens_.take(bytes_);
  memory_pool& pool = on.pool();
  reserved_ = pool.reserve(bytes_);
  tokens_.give(bytes_ - reserved_.bytes());
  bytes_ = reserved_.bytes();
  if (pool.statistics().idle_bytes + tokens_.held_bytes() > tokens_.budget_bytes()) pool.trim();
}

window_memory::~window_memory() { tokens_.give(bytes_); }

}  // namespace shale::parallel
