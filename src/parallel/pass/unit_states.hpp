// Manages the partial states of the units of one pass: a reduction merges them in a tree, a scan
// passes them on in a chain.
#pragma once

#include <optional>

#include "parallel/fold/fold.hpp"
#include "parallel/fold/fold_chain.hpp"
#include "parallel/fold/unit_groups.hpp"
#include "parallel/pass/unit.hpp"

namespace shale::parallel {

/// Threads  any, for different units
class unit_states {
 public:
  /// `scans`: the pass is a scan, not a reduction. `units` and `states` must outlive this object.
  unit_states(const plan& units, const fold_states& states, bool scans);

  /// The strides of the states of a unit over `box`, by axis of the plan.
  dims strides(const region& box) const { return groups_.state_strides(box); }

  /// Runs `body` on the unit, which folds its elements into states of its own. Then merges these
  /// states with those of other units. In a scan, passes them on to the next unit instead, and
  /// calls `write`, which writes the unit's results.
  /// Throws   out_of_memory, exceptions of both; cancelled if a scan has failed elsewhere
  void run(unit& here, const region& box, const unit_body& body, const unit_body& write);

  /// The listener for a failure of the loop over the units; null if there is none.
  failure_listener* listener() noexcept { return chain_ ? &*chain_ : nullptr; }

 private:
  void fold(unit& here, const region& box, const unit_body& body);
  void scan(unit& here, const unit_body& body, const unit_body& write);

  const fold_states& states_;
  unit_groups groups_;
  std::optional<fold_tree> tree_;  // either a tree or a chain
  std::optional<fold_chain> chain_;
};

}  // namespace shale::parallel
