// Sorts the stages of expressions into levels, which run one after the other, and says when their
// results may be freed.
//
// Invariants
//   stages.1  a stage reads results of lower levels only
//   stages.2  stages that compute the same node as a whole are one stage: the node is computed
//             once, however many broadcasts, views and generators read it. Each of these stages may
//             give the elements another shape
//   stages.3  the work does not depend on how many values read a node: a node is looked at a fixed
//             number of times for all values that are added, and for all readers of one level
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "ops/graph/graph.hpp"

namespace shale::ops {

/// The stages of each level. Several stages that are one (stages.2) are represented by the one that
/// was added first.
using stage_levels = std::vector<std::vector<std::shared_ptr<const detail::stage>>>;

class stage_order {
 public:
  /// The nodes that are computed at once, by a pass or by a stage that needs no pass.
  using reader = std::vector<const node*>;
  using stages = std::vector<const detail::stage*>;

  /// Adds the stages that the output `root` needs. Outputs must outlive this object.
  void add(const node_ref& root);

  /// Returns the levels. Call it once, after everything was added.
  ///
  /// A reduction runs as early as possible, so that reductions over one input share a pass. Its
  /// result is small. Every other stage runs as late as possible, in the level before its first
  /// reader, so that its result is held for a short time. Within a level, the stages that could not
  /// run earlier come first. So products free their operands before later stages allocate results.
  stage_levels levels();

  /// The other stages that are one with a stage of a level. Their results are its result in their
  /// own shapes.
  const stages& joined_with(const detail::stage& computed) const;

  /// The number of outputs, and of inputs of nodes, that are the stage's result or a view of it.
  std::size_t uses(const detail::stage& computed) const;

  /// The results that may be freed after each of `readers`, which run one after the other in one
  /// level. A result may be freed if no later reader and no higher level reads it. Outputs are read
  /// in the level after the last one. Call this after `levels`.
  /// Cost     O(nodes between the readers and the stages that they read)
  std::vector<stages> read_last(std::span<const reader> readers, std::size_t level);

  /// The nodes that `read_last` has looked at, in all calls together.
  std::uint64_t nodes_looked_at() const noexcept { return nodes_looked_at_; }

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  // The levels that read a node are those of the stages that read it. Outputs are read in the level
  // after the last one, so that level is the number of levels.
  struct node_facts {
    std::size_t level = 0;            // how many levels must have run before the node can be read
    std::size_t stage = none;         // the number of the stage whose result this is
    std::size_t first_reader = none;  // the first level that reads the node, if it is no output
    std::size_t last_reader = 0;      // the last level that reads the node
    bool is_output = false;
  };
  struct stage_facts {
    std::shared_ptr<const detail::stage> made;
    std::size_t level;  // the earliest level in which the stage can run
    stages joined = {};
    std::size_t uses = 0;
    std::size_t first_reader = none;
    std::size_t last_reader = 0;
  };

  void enter(const node& value);
  std::size_t number_of(const std::shared_ptr<const detail::stage>& made, std::size_t level);
  void count_use(const node& value);
  std::size_t level_of(const stage_facts& known) const;
  void find_first_readers();
  void find_last_readers();

  std::set<const node*> walked_;    // by `add`
  std::vector<const node*> order_;  // inputs come before the nodes that read them
  std::map<const node*, node_facts> nodes_;
  std::map<const detail::stage*, std::size_t> numbers_;  // of stages, in `stages_`
  std::map<const node*, std::size_t> whole_;  // by node: the stage that computes it as a whole
  std::vector<stage_facts> stages_;
  std::size_t level_count_ = 0;
  std::uint64_t nodes_looked_at_ = 0;
};

}  // namespace shale::ops
