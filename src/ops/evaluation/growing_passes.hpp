// Collects values into passes: values over one shape join a pass until it has no room.
//
// A value joins the first pass that has room for it. If the bits of a reduction depend on the order
// of its values, it joins a pass only if the pass folds it in the same order as a pass of its own
// (fold_order.hpp). A pass that has refused several values takes no more values. So the work grows
// with the number of values, and not with its square.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "ops/evaluation/compile.hpp"
#include "ops/evaluation/fold_order.hpp"

namespace shale::ops {

/// A pass that is being put together, and the nodes that its values are computed from.
struct growing_pass {
  planned_pass made;
  std::set<const node*> nodes = {};
  std::size_t leaves = 0;                         // among the nodes, without constants
  std::optional<fold_pass> folds = std::nullopt;  // if orders were compared; kept for the next one
  int refusals = 0;                               // values that it did not take
};

/// The passes for the stages of one level, or for the outputs.
class growing_passes {
 public:
  /// `staged` must have the results that the stages read, and must outlive this object.
  explicit growing_passes(const staged_values& staged) : staged_(staged) {}

  /// Returns a pass with room for the stage: for a reduction, or for a value that is computed as a
  /// whole. The pass already counts the leaves of the stage; the caller adds the stage itself.
  /// Reductions in one pass fold the same axes. Each has the same bits as in a pass of its own.
  /// Cost     O(nodes of the input that the pass does not compute yet), for each of the few passes
  ///          with room; comparing orders adds a bounded number of nodes and plans
  growing_pass& pass_for(const detail::stage& current);

  /// The same for an output.
  growing_pass& pass_for(const node_ref& output);

  /// All passes, in the order in which they were begun.
  const std::deque<growing_pass>& all() const noexcept { return passes_; }

  /// The passes that may take further values. Their number is bounded for each shape and axes.
  std::size_t with_room() const noexcept;

 private:
  // The properties that all values of a pass have in common.
  struct pass_kind {
    dims shape;
    dims axes;
    bool reduces;

    bool operator<(const pass_kind& other) const noexcept;
  };

  bool take_nodes(growing_pass& into, const node_ref& value, const detail::stage* reduction) const;
  growing_pass& find(const pass_kind& kind, const node_ref& value, const detail::stage* reduction);

  const staged_values& staged_;
  std::deque<growing_pass> passes_;
  std::map<pass_kind, std::vector<growing_pass*>> open_;  // the passes that may take values
};

}  // namespace shale::ops
