#include "ops/evaluation/computed_stages.hpp"

#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "ops/evaluation/compile.hpp"
#include "ops/graph/node_access.hpp"
#include "shale/evaluate.hpp"

namespace shale::ops {

using namespace detail;

namespace {

staged_values computed(const std::vector<node_ref>& nodes) {
  std::set<const stage*> seen;
  std::vector<const stage*> stages;
  std::vector<expr> results;
  const auto add = [&](const node_ref& value) {
    const auto* leaf = std::get_if<staged_leaf>(&value->content);
    if (!leaf || !seen.insert(leaf->from.get()).second) return;
    stages.push_back(leaf->from.get());
    results.push_back(
        expr_of(make_node(leaf->from->type, leaf->from->shape, staged_leaf{leaf->from})));
  };
  for (const node_ref& value : nodes) {
    add(value);
    for (const node_ref& input : generator_inputs(*value)) add(input);
  }
  staged_values values;
  if (stages.empty()) return values;
  const std::vector<tensor> tensors = eval_all(results);
  for (std::size_t k = 0; k < stages.size(); ++k) values.emplace(stages[k], tensors[k]);
  return values;
}

// Copies the nodes of a graph, inputs first, with tensor leaves in place of staged ones.
class graph_copy {
 public:
  explicit graph_copy(const staged_values& values) : values_(values) {}

  node_ref copy(const node_ref& value) {
    node_ref made =
        std::visit([&](const auto& content) { return copy(value, content); }, value->content);
    copies_.emplace(value.get(), made);
    return made;
  }

 private:
  template <class Content>
  node_ref copy(const node_ref& value, const Content&) {
    return value;  // a leaf without inputs
  }

  node_ref copy(const node_ref& value, const staged_leaf&) { return leaf_of(value); }

  node_ref copy(const node_ref& value, operation_node content) {
    for (node_ref& input : content.inputs) input = copies_.at(input.get());
    return make_node(value->type, value->shape, std::move(content));
  }

  node_ref copy(const node_ref& value, const cast_node& content) {
    return make_node(value->type, value->shape, cast_node{copies_.at(content.input.get())});
  }

  node_ref copy(const node_ref& value, repeated_leaf content) {
    content.input = leaf_of(content.input);
    return make_node(value->type, value->shape, std::move(content));
  }

  node_ref copy(const node_ref& value, concat_leaf content) {
    for (node_ref& piece : content.pieces) piece = leaf_of(piece);
    return make_node(value->type, value->shape, std::move(content));
  }

  node_ref copy(const node_ref& value, indexed_leaf content) {
    content.input = leaf_of(content.input);
    for (node_ref& index : content.indices) index = leaf_of(index);
    return make_node(value->type, value->shape, std::move(content));
  }

  node_ref copy(const node_ref& value, window_leaf content) {
    content.input = leaf_of(content.input);
    content.weights = leaf_of(content.weights);
    return make_node(value->type, value->shape, std::move(content));
  }

  node_ref leaf_of(const node_ref& value) const { return make_leaf(tensor_of(*value, values_)); }

  const staged_values& values_;
  std::map<const node*, node_ref> copies_;
};

}  // namespace

expr with_computed_stages(const expr& value) {
  const std::vector<node_ref> nodes = post_order(node_of(value));
  const staged_values values = computed(nodes);
  if (values.empty()) return value;
  graph_copy copies(values);
  node_ref last;
  for (const node_ref& next : nodes) last = copies.copy(next);
  return expr_of(std::move(last));
}

}  // namespace shale::ops
