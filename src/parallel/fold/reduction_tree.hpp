// Merges the partial results of tiles in a fixed order, so that floating-point results have the
// same bits for any number of threads.
//
// The tree is binary over J leaves. A leaf may arrive at any time, from any thread. It looks for
// its sibling. If the sibling waits, the two are merged and the result looks for its own sibling,
// one level up. If not, the partial result waits in a map, and a later leaf continues from there.
// So the last leaf to arrive reaches the root. No leaf waits for another, and the shape of the tree
// does not depend on the order of arrival. With five leaves:
//
//   level 0   0   1   2   3   4
//   level 1    01      23     4      leaf 4 has no sibling and moves up unchanged
//   level 2       0123        4
//   level 3           01234
//
// Invariants
//   fold.1  leaf j of J is merged with leaf j ^ 1, then pairs are merged with pairs, and so on; a
//           node without a sibling moves up unchanged: the shape depends on J only
//   fold.2  the left operand of a merge always has the lower leaves
//   fold.3  if tiles end in nearly ascending order, about threads + log2 J partials of each group
//           wait
#pragma once

#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "shale/storage.hpp"

namespace shale::parallel {

/// A forest: one tree for each group (unit_groups), each over `leaves` partials.
class reduction_tree {
 public:
  explicit reduction_tree(index_t leaves) noexcept : leaves_(leaves) {}

  /// Adds leaf `leaf` of group `group`. Merges siblings by `merge(into, from)`, without holding a
  /// lock. Returns the root if this was the last leaf of its group, else an empty storage.
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
  // Removes and returns the waiting sibling. If there is none, leaves `partial` to wait and returns
  // an empty storage.
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

}  // namespace shale::parallel
