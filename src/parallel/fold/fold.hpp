// Folds the elements of a pass into results, such as sums or extrema. Every unit of the pass has
// its own partial states, one for each result that it contributes to. A fixed tree merges the
// partial states of all units that contribute to the same results.
#pragma once

#include <vector>

#include "parallel/fold/reduction_tree.hpp"
#include "parallel/fold/unit_groups.hpp"
#include "parallel/plan/plan.hpp"
#include "shale/region.hpp"
#include "shale/storage.hpp"

namespace shale::parallel {

/// Makes, merges and delivers the states of one kind of reduction.
/// Threads  any, at any time
class fold_states {
 public:
  virtual ~fold_states() = default;

  /// Empty states of `results` results, one after the other.
  virtual storage make(index_t results) const = 0;

  /// Merges `from` into `into`. The elements that were folded into `into` come before those of
  /// `from`.
  virtual void merge(storage& into, const storage& from, index_t results) const = 0;

  /// Stores finished results. `place` gives their shape, and their strides and offset in elements
  /// of the pass's row-major results.
  virtual void deliver(const storage& from, const layout& place) const = 0;
};

/// The layout of the states of a box: row-major over the kept axes, stride 0 along the `folded`
/// axes.
layout state_layout(const dims& box, const dims& folded);

/// The positions of a box's elements, as a layout of items of one byte: row-major over the `folded`
/// axes of the whole `shape`, stride 0 along the kept axes.
layout position_layout(const region& box, const dims& shape, const dims& folded);

/// The operands that a plan of units has after those of the pass: positions, if they are read, and
/// states.
std::vector<plan_operand> fold_operands(const region& box, const dims& shape, const dims& folded,
                                        bool has_positions);

/// The trees over the units of a pass, one for each group.
class fold_tree {
 public:
  /// `groups` and `states` must outlive this object.
  fold_tree(const unit_groups& groups, const fold_states& states)
      : groups_(groups), states_(states), tree_(groups.leaves()) {}

  /// Adds the partial states of a unit to its tree. The last unit of a tree delivers the results.
  void insert(index_t unit, const region& box, const storage& partial);

 private:
  const unit_groups& groups_;
  const fold_states& states_;
  reduction_tree tree_;
};

}  // namespace shale::parallel
