#include "ops/evaluation/growing_passes.hpp"

#include <algorithm>
#include <variant>

#include "ops/kernels/dispatch/dispatch.hpp"
#include "parallel/plan/plan.hpp"

namespace shale::ops {

using namespace detail;

namespace {

// A pass with few free operands may still have room for a value that reads the leaves of the pass.
// After so many refusals such a value is no longer waited for.
constexpr int refusals_max = 8;

// Whether a reduction may join. Reading positions changes the order in which a pass folds. That
// would change the bits of float sums, which must not depend on what else is computed.
bool can_fold(const growing_pass& into, const stage& added) {
  if (!added.reduces) return true;
  bool positions = find_reducer(added.kind, added.input->type)->reads_positions;
  bool ordered = depends_on_order(added.kind);
  for (const auto& known : into.made.reductions) {
    positions = positions || find_reducer(known.kind, known.value->type)->reads_positions;
    ordered = ordered || depends_on_order(known.kind);
  }
  return !(positions && ordered);
}

// Adds the nodes of `value` if outputs, leaves and states together fit in one plan. Returns whether
// they fit. An empty pass takes any value.
bool take_nodes(growing_pass& into, const node_ref& value) {
  const std::vector<node_ref> added = post_order(value, walk::within_a_pass, into.nodes);
  std::size_t leaves = into.leaves;
  for (const auto& part : added)
    if (!computes_elements(*part) && !std::holds_alternative<constant_leaf>(part->content))
      ++leaves;
  const std::size_t values = into.made.outputs.size() + into.made.reductions.size();
  if (values > 0 && leaves + values + 2 > static_cast<std::size_t>(parallel::operands_max)) {
    for (const auto& part : added) into.nodes.erase(part.get());
    return false;
  }
  into.leaves = leaves;
  return true;
}

}  // namespace

growing_pass& growing_passes::pass_for(const stage& current) {
  return find({current.input->shape, current.axes, current.reduces}, current.input,
              [&](const growing_pass& known) { return can_fold(known, current); });
}

growing_pass& growing_passes::pass_for(const node_ref& output) {
  return find({output->shape, {}, false}, output, [](const growing_pass&) { return true; });
}

std::size_t growing_passes::with_room() const noexcept {
  std::size_t count = 0;
  for (const auto& [kind, passes] : open_) count += passes.size();
  return count;
}

template <class MayJoin>
growing_pass& growing_passes::find(const pass_kind& kind, const node_ref& value, MayJoin may_join) {
  std::vector<growing_pass*>& open = open_[kind];
  for (auto known = open.begin(); known != open.end();) {
    growing_pass& pass = **known;
    if (!may_join(pass)) {
      ++known;
      continue;
    }
    if (take_nodes(pass, value)) return pass;
    if (++pass.refusals < refusals_max) ++known;
    else known = open.erase(known);
  }
  growing_pass& made =
      passes_.emplace_back(growing_pass{planned_pass{kind.shape, {}, {}, kind.axes}});
  open.push_back(&made);
  take_nodes(made, value);
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
