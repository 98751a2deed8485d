// Holds the scratch memory of the workers of one call.
#pragma once

#include <algorithm>
#include <vector>

#include "parallel/executor/executor_state.hpp"
#include "parallel/executor/tile_loop.hpp"
#include "shale/storage.hpp"

namespace shale::parallel {

/// A worker's `bytes` are allocated when it first asks for them. There are as many workers as
/// threads, but no more than pieces of work. All workers together get at most half of the budget.
/// If that is too little for all of them, fewer may work.
/// Threads  workers may call `of` at once, each with its own number
class worker_scratch {
 public:
  /// For a loop over so many `pieces` of work.
  worker_scratch(std::size_t bytes, index_t pieces, executor& on)
      : bytes_(bytes),
        workers_(static_cast<int>(
            std::clamp<std::size_t>(on.memory_bytes() / 2 / std::max<std::size_t>(bytes, 1), 1,
                                    static_cast<std::size_t>(workers_for(pieces, on))))),
        tokens_(state_of(on).tokens, bytes * static_cast<std::size_t>(workers_)),
        pool_(on.pool()),
        blocks_(bytes > 0 ? static_cast<std::size_t>(workers_) : 0) {}

  /// The number of workers that may work at once, which have numbers below it.
  int workers() const noexcept { return workers_; }

  /// Null for 0 bytes.
  std::byte* of(int worker) {
    if (bytes_ == 0) return nullptr;
    storage& block = blocks_[static_cast<std::size_t>(worker)];
    if (!block) block = storage::allocate(bytes_, &pool_);
    return block.data();
  }

 private:
  const std::size_t bytes_;
  const int workers_;
  held_tokens tokens_;
  memory_pool& pool_;
  std::vector<storage> blocks_;
};

}  // namespace shale::parallel
