// Says which units of a plan contribute to the same results. The last operand of the plan has the
// layout of the results: stride 0 along the folded axes, and the results' strides along the kept
// axes. So the units' grid splits into two grids. Units with equal positions along the kept axes
// form a *group*: they contribute to the same results. The position along the folded axes is the
// number of the unit's *leaf* in its group.
//
// Invariants
//   units.1  the group and the leaf of a unit depend on the plan alone
#pragma once

#include "parallel/plan/plan.hpp"

namespace shale::parallel {

class unit_groups {
 public:
  /// `units` must outlive this object.
  explicit unit_groups(const plan& units);

  /// The units of each group.
  index_t leaves() const noexcept { return leaves_; }

  struct place {
    index_t group;
    index_t leaf;
  };
  place place_of(index_t unit) const;

  /// The number of results that a unit over `box` contributes to.
  index_t results(const region& box) const;

  /// The strides of a unit's states, in states, by axis of the plan: row-major over the kept axes,
  /// 0 along folded ones.
  dims state_strides(const region& box) const;

  /// Where the results of a unit over `box` lie among the results of the pass, which are row-major.
  /// (The plan may have merged or reordered the caller's axes.)
  layout place_of_results(const region& box) const;

 private:
  const dims& result_strides() const { return units_.strides_bytes(units_.operands() - 1); }
  bool keeps(index_t axis) const { return result_strides()[axis] != 0; }

  const plan& units_;
  index_t leaves_;
};

}  // namespace shale::parallel
