#include "parallel/fold/fold.hpp"

#include <algorithm>

namespace shale::parallel {

layout state_layout(const dims& box, const dims& folded) {
  dims kept = box;
  for (const index_t axis : folded) kept[axis] = std::min<index_t>(kept[axis], 1);
  dims strides = row_major_strides(kept);
  for (index_t axis = 0; axis < box.size(); ++axis)
    if (kept[axis] <= 1) strides[axis] = 0;
  return layout(box, strides, 0);
}

layout position_layout(const region& box, const dims& shape, const dims& folded) {
  dims strides = dims::filled(shape.size(), 0);
  index_t next = 1;
  index_t first = 0;
  for (index_t k = folded.size() - 1; k >= 0; --k) {
    const index_t axis = folded[k];
    strides[axis] = next;
    first += box.start[axis] * next;
    next *= shape[axis];
  }
  return layout(box.shape, strides, first);
}

std::vector<plan_operand> fold_operands(const region& box, const dims& shape, const dims& folded,
                                        bool has_positions) {
  std::vector<plan_operand> result;
  if (has_positions)
    result.push_back({position_layout(box, shape, folded), 1, operand_role::positions});
  result.push_back({state_layout(box.shape, folded), 1, operand_role::states});
  return result;
}

void fold_tree::insert(index_t unit, const region& box, const storage& partial) {
  const auto [group, leaf] = groups_.place_of(unit);
  const index_t results = groups_.results(box);
  const storage root = tree_.insert(group, leaf, partial, [&](storage& into, const storage& from) {
    states_.merge(into, from, results);
  });
  if (root) states_.deliver(root, groups_.place_of_results(box));
}

}  // namespace shale::parallel
