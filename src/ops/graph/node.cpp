#include "ops/graph/node.hpp"

#include <utility>

namespace shale::detail {

// malloc keeps freed blocks of up to 1,032 bytes for each thread. A node shares its block with the
// two counts of its shared_ptr.
static_assert(sizeof(node) + 16 <= 1032);

namespace {

// Whether `held` is the last reference. If so, everything that other threads did with their
// references happened before. use_count() alone does not guarantee this order. Releasing a copy of
// the reference does, because it acquires what other threads' releases have published.
template <class T>
bool is_last(const std::shared_ptr<T>& held) {
  if (held.use_count() != 1) return false;
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): its destructor is what acquires
  { const std::shared_ptr<T> given_back = held; }
  return true;
}

// A node's default destructor would destroy its inputs, whose destructors would destroy theirs, and
// a deep graph would overflow the stack. So the destructor first moves the inputs out of the node.
// Inputs that no other node reads are put into a list, which it works through one by one. The list
// is linked by a member of the nodes, because a destructor cannot rely on memory for a container.

bool is_tensor(const node& value) noexcept {
  return std::holds_alternative<tensor_leaf>(value.content);
}

// Moves the inputs out of a node. Puts those that no other node reads in front of `chain`. Tensor
// leaves have no inputs, so the node's members may destroy them.
void take_inputs(node& from, node_ref& chain) noexcept {
  const auto take = [&](node_ref& input) {
    if (!input || is_tensor(*input)) return;
    node_ref taken = std::move(input);
    if (!is_last(taken)) return;
    const_cast<node&>(*taken).destroyed_next = std::move(chain);
    chain = std::move(taken);
  };
  if (auto* operation = std::get_if<operation_node>(&from.content)) {
    for (auto& input : operation->inputs) take(input);
  } else if (auto* cast = std::get_if<cast_node>(&from.content)) {
    take(cast->input);
  } else if (auto* repeated = std::get_if<repeated_leaf>(&from.content)) {
    take(repeated->input);
  } else if (auto* concat = std::get_if<concat_leaf>(&from.content)) {
    for (auto& piece : concat->pieces) take(piece);
  } else if (auto* indexed = std::get_if<indexed_leaf>(&from.content)) {
    take(indexed->input);
    for (auto& index : indexed->indices) take(index);
  } else if (auto* window = std::get_if<window_leaf>(&from.content)) {
    take(window->input);
    take(window->weights);
  } else if (auto* staged = std::get_if<staged_leaf>(&from.content)) {
    // If no other leaf refers to the stage, its inputs are moved out, too.
    if (!is_last(staged->from)) return;
    auto& made = const_cast<stage&>(*staged->from);
    take(made.input);
    take(made.factor);
  }
}

}  // namespace

// Destroys the inputs that no other node reads, one after the other, without recursion (graph.4).
node::~node() {
  if (is_tensor(*this)) return;
  node_ref chain;
  take_inputs(*this, chain);
  while (chain) {
    node_ref others = std::move(const_cast<node&>(*chain).destroyed_next);
    take_inputs(const_cast<node&>(*chain), others);
    chain = std::move(others);
  }
}

}  // namespace shale::detail
