// Reserves memory for the mapped windows of one call.
#pragma once

#include "parallel/executor/executor_state.hpp"
#include "shale/memory_pool.hpp"

namespace shale::parallel {

/// Holds the reservation for its lifetime. It counts in the executor's budget and in the pool's
/// limit, so windows and temporaries share both. If the sum with the pool's idle memory exceeds the
/// budget, the pool is trimmed.
class window_memory {
 public:
  /// Reserves at most `wanted_bytes`, and less if less is left; `bytes()` may be 0.
  window_memory(executor& on, std::size_t wanted_bytes);
  ~window_memory();
  window_memory(const window_memory&) = delete;
  window_memory& operator=(const window_memory&) = delete;

  std::size_t bytes() const noexcept { return bytes_; }

 private:
  memory_tokens& tokens_;
  memory_pool::reservation reserved_;
  std::size_t bytes_;  // of the budget; taken after the pool has reserved them
};

}  // namespace shale::parallel
