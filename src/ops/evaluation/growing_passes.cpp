#include "ops/evaluation/growing_passes.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "ops/kernels/dispatch/dispatch.hpp"
#include "parallel/plan/plan.hpp"

namespace shale::ops {

using namespace detail;

namespace {

// After this many refusals, a pass takes no more values. (Even a pass with few free operands may
// have room for a value that only reads leaves which the pass already has.)
constexpr int refusals_max = 8;

// With more nodes, a sum and another value do not share a pass, because comparing their orders
// would take long.
constexpr std::size_t compared_nodes_max = 256;

// Whether a reduction may join. Reading positions changes the order in which a pass folds.
bool can_fold(const growing_pass& into, const stage& added) {
  bool positions = find_reducer(added.kind, added.input->type)->reads_positions;
  bool ordered = depends_on_order(added.kind, added.input->type);
  for (const auto& known : into.made.reductions) {
    positions = positions || find_reducer(known.kind, known.value->type)->reads_positions;
    ordered = ordered || depends_on_order(known.kind, known.value->type);
  }
  return !(positions && ordered);
}

// The order in which the reduction folds in a pass of its own.
fold_order order_alone(const stage& reduction, const staged_values& staged) {
  return pass_of({reduction.input}, reduction.axes, staged).order();
}

// Whether every reduction whose bits depend on the order keeps its order when `added` joins the
// pass. `added` alone has the order of a pass of its own; the other reductions have the order of
// the pass without `added`. `nodes` are those that `take_nodes` has just added to the pass for this
// value.
bool keeps_orders(growing_pass& into, const stage& added, const std::vector<node_ref>& nodes,
                  const staged_values& staged) {
  std::vector<node_ref> values;
  bool has_order = false;
  bool one_value = true;
  for (const auto& known : into.made.reductions) {
    values.push_back(known.value);
    has_order = has_order || depends_on_order(known.kind, known.value->type);
    one_value = one_value && known.value == added.input;
  }
  const bool needs_order = depends_on_order(added.kind, added.input->type);
  if (one_value) return true;
  if (!has_order && !needs_order) {
    into.folds.reset();
    return true;
  }
  if (into.nodes.size() > compared_nodes_max) return false;
  const dims& axes = into.made.axes;
  if (!into.folds) into.folds = pass_of(values, axes, staged);
  fold_pass together = *into.folds;
  together.add(nodes, staged);
  const bool keeps = tape::has_usual_blocks(together.steps(), together.item_bytes()) &&
                     (!has_order || into.folds->order() == together.order()) &&
                     (!needs_order || order_alone(added, staged) == together.order());
  if (keeps) into.folds = std::move(together);
  return keeps;
}

}  // namespace

growing_pass& growing_passes::pass_for(const stage& current) {
  return find({current.input->shape, current.axes, current.reduces}, current.input,
              current.reduces ? &current : nullptr);
}

growing_pass& growing_passes::pass_for(const node_ref& output) {
  return find({output->shape, {}, false}, output, nullptr);
}

std::size_t growing_passes::with_room() const noexcept {
  std::size_t count = 0;
  for (const auto& [kind, passes] : open_) count += passes.size();
  return count;
}

// Adds the nodes of `value` if outputs, leaves and states together fit in one plan, and if no order
// changes. Returns whether it has added them. An empty pass takes any value.
bool growing_passes::take_nodes(growing_pass& into, const node_ref& value,
                                const stage* reduction) const {
  const std::vector<node_ref> added = post_order(value, walk::within_a_pass, into.nodes);
  std::size_t leaves = into.leaves;
  for (const auto& part : added)
    if (!computes_elements(*part) && !std::holds_alternative<constant_leaf>(part->content))
      ++leaves;
  const std::size_t values = into.made.outputs.size() + into.made.reductions.size();
  const bool fits = leaves + values + 2 <= static_cast<std::size_t>(parallel::operands_max);
  if (values > 0 && !(fits && (!reduction || keeps_orders(into, *reduction, added, staged_)))) {
    for (const auto& part : added) into.nodes.erase(part.get());
    return false;
  }
  into.leaves = leaves;
  return true;
}

growing_pass& growing_passes::find(const pass_kind& kind, const node_ref& value,
                                   const stage* reduction) {
  std::vector<growing_pass*>& open = open_[kind];
  for (auto known = open.begin(); known != open.end();) {
    growing_pass& pass = **known;
    if (reduction && !can_fold(pass, *reduction)) {
      ++known;
      continue;
    }
    if (take_nodes(pass, value, reduction)) return pass;
    if (++pass.refusals < refusals_max) ++known;
    else known = open.erase(known);
  }
  growing_pass& made =
      passes_.emplace_back(growing_pass{planned_pass{kind.shape, {}, {}, kind.axes}});
  open.push_back(&made);
  take_nodes(made, value, reduction);
  return made;
}

bool growing_passes::pass_kind::operator<(const pass_kind& other) const noexcept {
  if (reduces != other.reduces) return other.reduces;
  if (shape != other.shape)
    return std::lexicographical_compare(shape.begin(), shape.end(), other.shape.begin(),
                                        other.shape.end());
  return std::lexicographical_compare(axes.begin(), axes.end(), other.axes.begin(),
                                      other.axes.end());
}

}  // namespace shale::ops
