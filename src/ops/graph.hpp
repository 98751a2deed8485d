// The graph behind `expr`: immutable nodes, made in their final shape and dtype.
//
// Invariants
//   graph.1  an operation's inputs all have the operation's own shape: broadcasting happens at the
//            leaves, where it costs nothing
//   graph.2  views never stay in the graph: they are pushed down to the leaves when they are made
//   graph.3  what views are not pushed through (reductions, matrix products, what would be computed
//            again and again, what is too large to copy) is a *staged* node: computed once, earlier,
//            and then a leaf
//   graph.4  nothing recurses along a graph, which is as deep as the loop that built it was long:
//            walks go through `post_order`, and nodes take their inputs apart when they go
#pragma once

#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "ops/axis_map.hpp"
#include "ops/kernels.hpp"
#include "shale/scalar.hpp"
#include "shale/tensor.hpp"
#include "shale/tile_source.hpp"

namespace shale::detail {

struct node;
using node_ref = std::shared_ptr<const node>;

/// Elements in memory; the tensor's layout is the view.
struct tensor_leaf {
  tensor values;
};

/// Elements that come tile by tile, seen through a map.
struct source_leaf {
  std::shared_ptr<const tile_source> source;
  ops::axis_map map;
};

/// One number everywhere. Weak: written in C++ and not yet bound to a dtype.
struct constant_leaf {
  scalar value;
  bool weak = false;
};

/// start + step * k, where k is the position along the map's one input axis.
struct range_leaf {
  scalar start;
  scalar step;
  ops::axis_map map;
};

/// Elements of a staged or in-memory input at rearranged positions: along input axis a the position
/// p of the map becomes p % modulus[a] (`tile`) or p / divisor[a] (`repeat`).
struct gather_leaf {
  node_ref input;  // a tensor leaf or a staged node
  ops::axis_map map;
  dims modulus;  // 0: the position as it is
  dims divisor;  // 1: the position as it is
};

/// Pieces one after the other along one axis of the map's input.
struct concat_leaf {
  std::vector<node_ref> pieces;  // tensor leaves or staged nodes, of the node's dtype
  std::vector<index_t> starts;   // along `axis`, one more than pieces
  index_t axis;
  ops::axis_map map;
};

struct operation_node {
  ops::operation which;
  std::vector<node_ref> inputs;
};

struct cast_node {
  node_ref input;
};

/// What a staged node computes: a reduction, a matrix product, or the input itself.
struct stage {
  node_ref input;
  node_ref factor = nullptr;  // of a product, on the right; both are then in memory or staged
  bool reduces = false;
  ops::reduction which = ops::reduction::sum;
  dims axes = {};  // ascending; folded
  double parameter = 0;
  dims shape = {};  // of the result: folded axes as length 1; the input's elements, reshaped
  dtype type = dtype::float32;
};

/// A stage's result, seen through a map.
struct staged_leaf {
  std::shared_ptr<const stage> from;
  ops::axis_map map;
};

struct node {
  using anything = std::variant<tensor_leaf, source_leaf, constant_leaf, range_leaf, gather_leaf,
                                concat_leaf, operation_node, cast_node, staged_leaf>;

  node(dtype element_type, const dims& extents, anything is)
      : type(element_type), shape(extents), what(std::move(is)) {}
  ~node();
  node(const node&) = delete;
  node& operator=(const node&) = delete;

  dtype type;
  dims shape;
  anything what;
};

}  // namespace shale::detail

namespace shale::ops {

using detail::node;
using detail::node_ref;

/// A node of any kind, in its final shape and dtype.
template <class What>
node_ref make_node(dtype type, const dims& shape, What what) {
  return std::make_shared<const node>(type, shape, std::move(what));
}

node_ref make_leaf(const tensor& values);
node_ref make_leaf(std::shared_ptr<const tile_source> source);
node_ref make_constant(const scalar& value, const dims& shape, dtype type, bool weak);

/// Broadcasts and casts the inputs as the operation wants them. Promotion is done here.
node_ref make_operation(operation which, std::vector<node_ref> inputs);
node_ref make_cast(const node_ref& input, dtype to);

/// Computed once, then a leaf. Leaves in memory and staged nodes come back as they are.
node_ref make_staged(const node_ref& input);
node_ref make_reduction(const node_ref& input, reduction which, const dims& axes, bool keep_axes,
                        double parameter);

/// How far a walk goes: to the leaves of one pass, or through what leaves are made from too.
enum class walk { within_a_pass, through_stages };

/// The matrix product, as `matmul`.
node_ref make_product(const node_ref& a, const node_ref& b);

/// What a node reads directly.
std::vector<node_ref> inputs_of(const node& which, walk how = walk::within_a_pass);

/// What a leaf that is generated reads; its inputs are leaves in memory or staged nodes.
std::vector<node_ref> generator_inputs(const node& leaf);

/// The node and all that it is computed from, inputs before what reads them, each once.
std::vector<node_ref> post_order(const node_ref& root, walk how = walk::within_a_pass);

/// Whether evaluating the node runs kernels (rather than reading a leaf).
bool computes_elements(const node& which) noexcept;

}  // namespace shale::ops
