#include "storage/pool/pools/pool_list.hpp"

#include "storage/pool/caches/biased_lock.hpp"
#include "storage/pool/pools/pool_state.hpp"
#include "storage/system/fork_handlers.hpp"

namespace shale::detail {

namespace {

void lock_all_pools() {
  auto& list = all_pools();
  list.lock.lock();
  for (auto* const pool : list.pools) pool->lock_all();
}

void unlock_all_pools() {
  auto& list = all_pools();
  for (auto pool = list.pools.rbegin(); pool != list.pools.rend(); ++pool) (*pool)->unlock_all();
  list.lock.unlock();
}

void unlock_in_child() {
  biased_lock::prepare();
  unlock_all_pools();
}

}  // namespace

pool_list& all_pools() {
  static pool_list& list = []() -> pool_list& {
    auto& made = *new pool_list;
    biased_lock::prepare();
    static constexpr fork_handlers handlers{lock_all_pools, unlock_all_pools, unlock_in_child};
    on_fork(forking_part::memory_pools, handlers);
    return made;
  }();
  return list;
}

void join_pools(pool_state& pool) {
  auto& list = all_pools();
  const std::lock_guard lock(list.lock);
  list.pools.push_back(&pool);
}

void leave_pools(pool_state& pool) noexcept {
  auto& list = all_pools();
  const std::lock_guard lock(list.lock);
  std::erase(list.pools, &pool);
}

}  // namespace shale::detail
