#include "ops/evaluation/computed_stages.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "ops/evaluation/compile.hpp"
#include "ops/graph/node_access.hpp"
#include "shale/evaluate.hpp"

namespace shale::ops {

using namespace detail;

namespace {

// The stages that a graph reads. A node that several of them compute as a whole is computed once.
class stages_of_graph {
 public:
  explicit stages_of_graph(const std::vector<node_ref>& nodes) {
    for (const node_ref& value : nodes) {
      add(*value);
      for (const node_ref& input : generator_inputs(*value)) add(*input);
    }
  }

  staged_values computed() const {
    staged_values values;
    if (numbers_.empty()) return values;
    const std::vector<tensor> tensors = eval_all(results_);
    for (const auto& [read, number] : numbers_)
      values.emplace(read, tensors[number].view(read->shape));
    return values;
  }

 private:
  void add(const node& value) {
    const auto* leaf = std::get_if<staged_leaf>(&value.content);
    if (!leaf || numbers_.count(leaf->from.get()) > 0) return;
    const stage& made = *leaf->from;
    std::size_t number = results_.size();
    if (const node* whole = computed_as_a_whole(made))
      number = whole_.try_emplace(whole, number).first->second;
    if (number == results_.size())
      results_.push_back(expr_of(make_node(made.type, made.shape, staged_leaf{leaf->from})));
    numbers_.emplace(&made, number);
  }

  std::map<const stage*, std::size_t> numbers_;  // of results
  std::map<const node*, std::size_t> whole_;
  std::vector<expr> results_;
};

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

// The copy of the last of `nodes`, which are in post-order.
node_ref copied(const std::vector<node_ref>& nodes, const staged_values& values) {
  graph_copy copies(values);
  node_ref last;
  for (const node_ref& next : nodes) last = copies.copy(next);
  return last;
}

}  // namespace

expr with_computed_stages(const expr& value) {
  const std::vector<node_ref> nodes = post_order(node_of(value));
  const staged_values values = stages_of_graph(nodes).computed();
  return values.empty() ? value : expr_of(copied(nodes, values));
}

node_ref with_values(const node_ref& value, const staged_values& values) {
  return copied(post_order(value), values);
}

}  // namespace shale::ops
