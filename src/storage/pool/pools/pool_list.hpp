// Keeps the list of living pools, and locks all of them around a fork.
#pragma once

#include <mutex>
#include <vector>

namespace shale::detail {

class pool_state;

/// All pools of the process. It is never destroyed, because threads and static objects may outlive
/// all destructors of this library.
struct pool_list {
  std::mutex lock;
  std::vector<pool_state*> pools;
};
pool_list& all_pools();

/// Adds a pool to the list and removes it; after `leave_pools` no other thread accesses it.
void join_pools(pool_state& pool);
void leave_pools(pool_state& pool) noexcept;

}  // namespace shale::detail
