// Combining the partial results of tiles in an order that no thread can change.
//
// Invariants
//   fold.1  leaf j of J is merged with its neighbour j ^ 1, those pairs with theirs, and so on; a
//           node without a neighbour moves up alone: the shape depends on J only
//   fold.2  the left operand of a merge is always the lower leaves
//   fold.3  where tiles end about as they begin, in ascending order, about threads + log2 J
//           partials wait for each group
#pragma once

#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "shale/storage.hpp"

namespace shale::ops {

/// A forest: one tree for each of `groups` results, each over `leaves` partials.
class reduction_tree {
 public:
  explicit reduction_tree(index_t leaves) noexcept : leaves_(leaves) {}

  /// Hands in leaf `leaf` of group `group`. Merges whatever is ready by `merge(into, from)`,
  /// outside any lock. Returns the root when this was the last leaf of its group, else nothing.
  template <class Merge>
  storage insert(index_t group, index_t leaf, storage partial, Merge merge) {
    index_t level_nodes = leaves_;
    index_t node = leaf;
    for (int level = 0; level_nodes > 1; ++level) {
      const bool alone = node == level_nodes - 1 && level_nodes % 2 == 1;
      if (!alone) {
        storage sibling = meet(group, level, node, partial);
        if (!sibling) return {};
        if (node % 2 == 0) {
          merge(partial, sibling);
        } else {
          merge(sibling, partial);
          partial = sibling;
        }
      }
      node /= 2;
      level_nodes = ceil_div<index_t>(level_nodes, 2);
    }
    return partial;
  }

 private:
  // The waiting sibling, taken out; or nothing, and `partial` waits.
  storage meet(index_t group, int level, index_t node, const storage& partial) {
    const std::lock_guard lock(mutex_);
    const auto sibling = waiting_.find({group, level, node ^ 1});
    if (sibling == waiting_.end()) {
      waiting_.emplace(std::tuple(group, level, node), partial);
      return {};
    }
    storage found = sibling->second;
    waiting_.erase(sibling);
    return found;
  }

  const index_t leaves_;
  std::mutex mutex_;
  std::map<std::tuple<index_t, int, index_t>, storage> waiting_;
};

}  // namespace shale::ops
