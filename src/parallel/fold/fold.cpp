#include "parallel/fold/fold.hpp"

#include <algorithm>

#include "core/grid.hpp"

namespace shale::parallel {

namespace {

// The number of units along the folded axes: the leaves of each tree.
index_t leaves_of(const plan& units) {
  const dims& kept = units.strides_bytes(units.operands() - 1);
  index_t leaves = 1;
  for (index_t axis = 0; axis < units.rank(); ++axis)
    if (kept[axis] == 0) leaves *= units.grid()[axis];
  return leaves;
}

}  // namespace

layout state_layout(const dims& box, const dims& folded) {
  dims kept = box;
  for (const index_t axis : folded) kept[axis] = std::min<index_t>(kept[axis], 1);
  dims strides = row_major_strides(kept);
  for (index_t axis = 0; axis < box.size(); ++axis)
    if (kept[axis] <= 1) strides[axis] = 0;
  return layout(box, strides, 0);
}

fold_tree::fold_tree(const plan& units, const fold_states& states)
    : units_(units), states_(states), tree_(leaves_of(units)) {}

index_t fold_tree::results(const region& box) const {
  index_t results = 1;
  for (index_t axis = 0; axis < units_.rank(); ++axis)
    if (keeps(axis)) results *= box.shape[axis];
  return results;
}

dims fold_tree::state_strides(const region& box) const {
  dims strides = dims::filled(units_.rank(), 0);
  index_t next = 1;
  for (index_t axis = units_.rank() - 1; axis >= 0; --axis) {
    if (!keeps(axis)) continue;
    strides[axis] = next;
    next *= box.shape[axis];
  }
  return strides;
}

void fold_tree::insert(index_t unit, const region& box, const storage& partial) {
  const dims at = detail::unravel(unit, units_.grid());
  index_t group = 0;
  index_t leaf = 0;
  for (index_t axis = 0; axis < units_.rank(); ++axis) {
    index_t& number = keeps(axis) ? group : leaf;
    number = number * units_.grid()[axis] + at[axis];
  }
  const index_t results = this->results(box);
  const storage root = tree_.insert(group, leaf, partial, [&](storage& into, const storage& from) {
    states_.merge(into, from, results);
  });
  if (root) deliver(box, root);
}

// The plan may have merged or reordered the caller's axes. The strides of its last operand still
// say where a unit's results lie in the row-major results of the pass.
void fold_tree::deliver(const region& box, const storage& root) const {
  const dims& kept = units_.strides_bytes(units_.operands() - 1);
  dims shape, strides;
  index_t first = units_.origin_bytes(units_.operands() - 1);
  for (index_t axis = 0; axis < units_.rank(); ++axis) {
    if (!keeps(axis)) continue;
    shape.push_back(box.shape[axis]);
    strides.push_back(kept[axis]);
    first += box.start[axis] * kept[axis];
  }
  states_.deliver(root, layout(shape, strides, first));
}

}  // namespace shale::parallel
