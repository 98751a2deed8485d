#include "parallel/fold/fold_chain.hpp"

#include <utility>

namespace shale::parallel {

storage fold_chain::take(index_t unit, const storage& own, index_t results) {
  const auto [group, leaf] = groups_.place_of(unit);
  storage before;
  if (leaf == 0) {
    before = states_.make(results);
  } else {
    std::unique_lock lock(mutex_);
    const auto arrived = [&, group = group, leaf = leaf] {
      const auto found = links_.find(group);
      return found != links_.end() && found->second.leaf == leaf;
    };
    arrived_.wait(lock, [&] { return failed_ || arrived(); });
    if (failed_) return {};
    before = std::move(links_.at(group).states);
    if (leaf + 1 == groups_.leaves()) links_.erase(group);
  }
  if (leaf + 1 < groups_.leaves()) {
    storage after = states_.make(results);
    states_.merge(after, before, results);
    states_.merge(after, own, results);
    {
      const std::lock_guard lock(mutex_);
      links_.insert_or_assign(group, link{leaf + 1, std::move(after)});
    }
    arrived_.notify_all();
  }
  return before;
}

void fold_chain::loop_failed() noexcept {
  {
    const std::lock_guard lock(mutex_);
    failed_ = true;
  }
  arrived_.notify_all();
}

}  // namespace shale::parallel
