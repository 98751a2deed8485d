// Folds the elements of a pass into results, such as sums or extrema. Every unit of the pass has
// its own partial states, one for each result that it contributes to. A fixed tree merges the
// partial states of all units that contribute to the same results.
//
// The plan of the units has the layout of the results as its last operand: stride 0 along the
// folded axes, and the results' strides along the kept axes. So the units' grid splits into two
// grids. Units with equal positions along the kept axes form a *group*: they contribute to the same
// results and have one tree. The position along the folded axes is the number of the unit's *leaf*
// in that tree.
#pragma once

#include "parallel/fold/reduction_tree.hpp"
#include "parallel/plan/plan.hpp"
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

/// The trees over the units of a plan whose last operand has the layout of the results.
///
/// Invariants
///   units.1  the tree and the leaf of a unit depend on the plan alone
class fold_tree {
 public:
  fold_tree(const plan& units, const fold_states& states);

  /// The number of results that a unit over `box` contributes to.
  index_t results(const region& box) const;

  /// The strides of a unit's states, in states, by axis of the plan: row-major over the kept axes,
  /// 0 along folded ones.
  dims state_strides(const region& box) const;

  storage make(index_t results) const { return states_.make(results); }

  /// Adds the partial states of a unit to its tree. The last unit of a tree delivers the results.
  void insert(index_t unit, const region& box, const storage& partial);

 private:
  bool keeps(index_t axis) const { return units_.strides_bytes(units_.operands() - 1)[axis] != 0; }
  void deliver(const region& box, const storage& root) const;

  const plan& units_;
  const fold_states& states_;
  reduction_tree tree_;
};

}  // namespace shale::parallel
