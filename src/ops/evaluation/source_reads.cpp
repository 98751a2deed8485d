#include "ops/evaluation/source_reads.hpp"

#include <algorithm>
#include <variant>

#include "ops/graph/node_access.hpp"
#include "parallel/operands/aliases.hpp"
#include "shale/tile_source.hpp"

namespace shale::ops {

using namespace detail;

namespace {

// Along an axis of one position, the step and even the input axis have no meaning.
bool same_places(const parallel::axis_map& a, const parallel::axis_map& b) {
  bool same = a.base == b.base && a.shape == b.shape;
  for (index_t axis = 0; same && axis < a.rank(); ++axis)
    same = a.shape[axis] == 1 || (a.from[axis] == b.from[axis] && a.step[axis] == b.step[axis]);
  return same;
}

}  // namespace

bool reads_elsewhere(const node_ref& value, const void* identity,
                     const parallel::axis_map& written) {
  const auto nodes = post_order(value);
  return std::any_of(nodes.begin(), nodes.end(), [&](const node_ref& input) {
    const auto* leaf = std::get_if<source_leaf>(&input->content);
    return leaf && leaf->source->identity() == identity && !same_places(*leaf->map, written);
  });
}

bool reads_bytes_of(const node_ref& value, const tensor& output) {
  const auto nodes = post_order(value, walk::through_stages);
  return std::any_of(nodes.begin(), nodes.end(), [&](const node_ref& input) {
    const auto* leaf = std::get_if<tensor_leaf>(&input->content);
    return leaf && parallel::may_overlap(output, leaf->values);
  });
}

bool reads_indices_of(const indexed_leaf& leaf, const tensor& output) {
  return std::any_of(leaf.indices.begin(), leaf.indices.end(), [&](const node_ref& index) {
    const auto* own = std::get_if<tensor_leaf>(&index->content);
    return own && parallel::may_overlap(output, own->values);
  });
}

bool reads_elsewhere(const expr& value, const void* identity, const parallel::axis_map& written) {
  return reads_elsewhere(node_of(value), identity, written);
}

}  // namespace shale::ops
