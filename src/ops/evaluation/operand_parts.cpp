#include "ops/evaluation/operand_parts.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "ops/graph/node_access.hpp"
#include "ops/graph/views.hpp"
#include "shale/evaluate.hpp"
#include "shale/executor.hpp"
#include "shale/tile_source.hpp"

namespace shale::ops {

using namespace detail;

operand_parts::operand_parts(node_ref operand) : operand_(std::move(operand)) {
  for (const node_ref& value : post_order(operand_))
    if (const auto* leaf = std::get_if<tensor_leaf>(&value->content);
        leaf && leaf->values.size() > 0)
      mapped_.add(leaf->values.storage(), parallel::span_of(leaf->values).bytes);
}

tensor operand_parts::held(const region& box) const {
  const node_ref part = make_part(operand_, box);
  if (const auto* leaf = std::get_if<tensor_leaf>(&part->content);
      leaf && !is_mapped(leaf->values.storage()) && leaf->values.is_contiguous())
    return leaf->values;
  const tensor held = eval(expr_of(part));
  release_pages(part);
  return held;
}

void operand_parts::evaluate_into(const tensor& out, const region& box) const {
  const node_ref part = make_part(operand_, box);
  eval_into(out, expr_of(part));
  release_pages(part);
}

void operand_parts::release_pages(const node_ref& part) const {
  if (!mapped_.exceed_half_of_budget(executor::current())) return;
  for (const node_ref& value : post_order(part))
    if (const auto* leaf = std::get_if<tensor_leaf>(&value->content);
        leaf && is_mapped(leaf->values.storage()))
      leaf->values.storage().evict(parallel::span_of(leaf->values));
}

dims extents_of_sources(const node_ref& value) {
  dims extents = dims::filled(value->shape.size(), 1);
  for (const node_ref& input : post_order(value)) {
    const auto* leaf = std::get_if<source_leaf>(&input->content);
    if (!leaf) continue;
    for (index_t axis = 0; axis < extents.size(); ++axis) {
      const index_t from = leaf->map->from[axis];
      if (from < 0) continue;
      const index_t step = std::max<index_t>(std::abs(leaf->map->step[axis]), 1);
      extents[axis] = std::max(extents[axis], leaf->source->tile_shape()[from] / step);
    }
  }
  return extents;
}

}  // namespace shale::ops
