// Sorts the stages of expressions into levels, which run one after the other.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "ops/graph/graph.hpp"

namespace shale::ops {

using stage_levels = std::vector<std::vector<std::shared_ptr<const detail::stage>>>;

/// A stage reads results of lower levels only.
class stage_order {
 public:
  /// Adds the stages that `root` needs.
  void add(const node_ref& root);

  /// Returns the levels. A reduction runs as early as possible, so that reductions over one input
  /// share a pass; its result is small. Another stage runs as late as possible, in the level before
  /// its first reader, so that its result is held for a short time. Within a level, stages that
  /// could not run earlier come first: so products free their operands before later stages allocate
  /// results.
  stage_levels levels() const;

  /// The stages whose results a pass reads when it computes `value`, or the input of `reader`. Both
  /// belong to what was added.
  /// Cost     O(nodes between them and these stages)
  std::set<const detail::stage*> stages_read(const node_ref& value) const;
  std::set<const detail::stage*> stages_read(const detail::stage& reader) const;

 private:
  void add_stages_read(const node& value, std::set<const detail::stage*>& to) const;
  int level_of_node(const node& value);
  int level_of_stage(const std::shared_ptr<const detail::stage>& current);

  std::set<const node*> walked_;  // by `add`
  std::map<const node*, int> nodes_;
  std::map<const detail::stage*, int> stages_;
  stage_levels levels_;  // every stage in its earliest level
};

}  // namespace shale::ops
