// Carries the states of a scan from unit to unit: each unit begins with the states of all elements
// that lie before it along the scanned axis.
//
// The units of a group (unit_groups) form a chain. A unit first folds its own elements. Then it
// waits for the states of the unit before it, merges its own into them for the unit after it, and
// scans. So the elements are read from memory once: when they are scanned, they are in the cache.
//
// Invariants
//   chain.1  the states that a unit gets are those of its predecessors, merged one after the other
//            in ascending order: they depend on the plan alone
//   chain.2  a unit waits only for units with lower numbers; they have begun (loop.1)
//   chain.3  when the pass fails, no unit waits any longer; a unit that waited has no states to
//            begin with, so it fails too, and none of its results are stored
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>

#include "parallel/executor/tile_loop.hpp"
#include "parallel/fold/fold.hpp"
#include "parallel/fold/unit_groups.hpp"
#include "shale/storage.hpp"

namespace shale::parallel {

class fold_chain final : public failure_listener {
 public:
  /// `groups` and `states` must outlive this object.
  fold_chain(const unit_groups& groups, const fold_states& states)
      : groups_(groups), states_(states) {}

  /// Whether other units need the states of this unit's elements.
  bool has_successor(index_t unit) const {
    return groups_.place_of(unit).leaf + 1 < groups_.leaves();
  }

  /// Waits for the unit before this one. Returns the states with which this unit begins, which are
  /// its own from now on; an empty storage if the pass has failed. `own` are the states of its own
  /// elements, for `results` results; they are not used if it has no successor.
  /// Throws   out_of_memory
  storage take(index_t unit, const storage& own, index_t results);

  void loop_failed() noexcept override;

 private:
  // The states that wait for the unit with this leaf.
  struct link {
    index_t leaf;
    storage states;
  };

  const unit_groups& groups_;
  const fold_states& states_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<index_t, link> links_;  // by group
  bool failed_ = false;
};

}  // namespace shale::parallel
