// Holds the scratch memory of the workers of one call.
#pragma once

#include <vector>

#include "parallel/executor/executor_state.hpp"
#include "shale/storage.hpp"

namespace shale::parallel {

/// A worker's `bytes` are allocated when it first asks for them.
/// Threads  workers may call `of` at once, each with its own number
class worker_scratch {
 public:
  worker_scratch(std::size_t bytes, executor& on)
      : bytes_(bytes),
        tokens_(state_of(on).tokens, bytes * static_cast<std::size_t>(on.threads())),
        pool_(on.pool()),
        blocks_(bytes > 0 ? static_cast<std::size_t>(on.threads()) : 0) {}

  /// Null for 0 bytes.
  std::byte* of(int worker) {
    if (bytes_ == 0) return nullptr;
    storage& block = blocks_[static_cast<std::size_t>(worker)];
    if (!block) block = storage::allocate(bytes_, &pool_);
    return block.data();
  }

 private:
  const std::size_t bytes_;
  held_tokens tokens_;
  memory_pool& pool_;
  std::vector<storage> blocks_;
};

}  // namespace shale::parallel
