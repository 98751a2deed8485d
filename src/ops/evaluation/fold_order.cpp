#include "ops/evaluation/fold_order.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "parallel/fold/fold.hpp"
#include "parallel/plan/plan.hpp"
#include "shale/tile_source.hpp"

namespace shale::ops {

using namespace detail;

namespace {

bool is_same(const pass_operand& a, const pass_operand& b) {
  if (a.tiles && b.tiles)
    return a.tiles->source == b.tiles->source && a.tiles->seen == b.tiles->seen;
  return !a.tiles && !b.tiles && a.values.dtype() == b.values.dtype() &&
         a.values.is_set_to(b.values);
}

operand_order order_of_tiles(const parallel::tiled_elements& tiles, std::size_t item_bytes) {
  const parallel::axis_map& seen = tiles.seen;
  const dims& shape = tiles.source->shape();
  const dims& extents = tiles.source->tile_shape();
  operand_order result{.item_bytes = item_bytes,
                       .from = seen.from,
                       .step = seen.step,
                       .tile_shape = extents,
                       .first = dims::filled(shape.size(), 0)};
  dims last = seen.base;
  for (index_t axis = 0; axis < seen.rank(); ++axis) {
    const index_t from = seen.from[axis];
    if (from < 0 || seen.shape[axis] <= 1) continue;
    const index_t end = seen.base[from] + (seen.shape[axis] - 1) * seen.step[axis];
    last[from] = std::max(seen.base[from], end);
    result.first[from] = seen.base[from] % extents[from];
  }
  for (index_t axis = 0; axis < shape.size(); ++axis) {
    const index_t start = last[axis] - last[axis] % extents[axis];
    result.last_tile.push_back(std::min(extents[axis], shape[axis] - start));
  }
  return result;
}

operand_order order_of(const pass_operand& operand) {
  if (operand.tiles) return order_of_tiles(*operand.tiles, operand.item_bytes());
  operand_order result{.item_bytes = operand.item_bytes()};
  for (index_t axis = 0; axis < operand.values.rank(); ++axis) {
    const bool moves = operand.values.shape()[axis] != 1;
    result.strides_bytes.push_back(
        moves ? operand.values.strides()[axis] * static_cast<index_t>(operand.item_bytes()) : 0);
  }
  return result;
}

}  // namespace

void fold_pass::add(const std::vector<node_ref>& nodes, const staged_values& staged) {
  for (const node_ref& part : nodes) {
    if (std::holds_alternative<constant_leaf>(part->content)) continue;
    if (reads_operand(*part)) {
      add_leaf(ops::operand_of(*part, staged));
      continue;
    }
    ++steps_;
    item_bytes_ = std::max(item_bytes_, shale::item_bytes(part->type));
    order_.generates = order_.generates || !computes_elements(*part);
  }
  choose_units();
}

void fold_pass::add_leaf(pass_operand leaf) {
  const auto is_known = [&](const pass_operand& known) { return is_same(known, leaf); };
  if (std::any_of(leaves_.begin(), leaves_.end(), is_known)) return;
  const operand_order order = order_of(leaf);
  auto& known = order_.operands;
  if (std::find(known.begin(), known.end(), order) == known.end()) known.push_back(order);
  leaves_.push_back(std::move(leaf));
}

void fold_pass::choose_units() {
  std::vector<parallel::plan_operand> operands;
  for (const pass_operand& leaf : leaves_) {
    if (leaf.tiles) {
      order_.tile = {};
      return;
    }
    operands.push_back({leaf.values.layout(), leaf.item_bytes()});
  }
  const region whole{dims::filled(shape_.size(), 0), shape_};
  for (const auto& operand : parallel::fold_operands(whole, shape_, axes_, false))
    operands.push_back(operand);
  order_.tile = parallel::plan(operands, {.keep_axes = order_.generates}).tile_shape();
}

fold_pass pass_of(const std::vector<node_ref>& values, const dims& axes,
                  const staged_values& staged) {
  std::vector<node_ref> nodes;
  std::set<const node*> seen;
  for (const node_ref& value : values)
    for (node_ref& part : post_order(value, walk::within_a_pass, seen))
      nodes.push_back(std::move(part));
  fold_pass result(values[0]->shape, axes);
  result.add(nodes, staged);
  return result;
}

}  // namespace shale::ops
