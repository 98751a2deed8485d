// Makes and walks the graph behind `expr`: immutable nodes (node.hpp) that have their final shape and
// dtype from the start.
//
// A leaf has elements: a tensor, a tile source, a constant, or elements computed from coordinates.
// An operation or a cast computes its elements from inputs. A *staged* node is computed in an
// earlier pass into memory, and then is a leaf of later passes: reductions, scans, rolling
// reductions and matrix products are staged, and so are values that one pass would compute again
// and again.
//
// Invariants
//   graph.1  all inputs of an operation have the operation's shape: broadcasting happens at the
//            leaves, where it costs nothing
//   graph.2  there are no nodes for views: a view is pushed down to the leaves when it is made
//   graph.3  a node that a view cannot be pushed through is staged: a reduction, a scan, a matrix
//            product, a value that would be computed repeatedly, a graph that is too large to copy
//   graph.4  no function recurses along a graph, because a graph is as deep as the loop that built
//            it was long: walks use `post_order`, and the destructor uses a list
#pragma once

#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "ops/graph/node.hpp"
#include "ops/kernels/operations/operations.hpp"
#include "parallel/sources/axis_map.hpp"
#include "shale/scalar.hpp"
#include "shale/tensor.hpp"
#include "shale/tile_source.hpp"

namespace shale::ops {

using detail::node;
using detail::node_ref;
using parallel::axis_map;

/// Makes a node with one of the contents of node.hpp.
template <class Content>
node_ref make_node(dtype type, const dims& shape, Content content) {
  return std::make_shared<const node>(type, shape, std::in_place_type<Content>, std::move(content));
}

node_ref make_leaf(const tensor& values);
node_ref make_leaf(std::shared_ptr<const tile_source> source);
/// The widest dtype of the number's kind: bool, int64 (uint64 if int64 cannot hold the number),
/// float64 or complex128.
dtype constant_dtype(const scalar& value) noexcept;
node_ref make_constant(const scalar& value, const dims& shape, dtype type, bool weak);

/// Whether the node is a weak constant. A view of one has the dtype of the number's kind, and is no
/// longer weak.
bool is_weak(const node& value) noexcept;

/// The dtype to which the inputs of an operation, at least one, are promoted. Weak constants take
/// the dtype of the others.
/// Throws   invalid_argument (dtypes that do not promote; a number that does not fit its tensor)
dtype promoted_dtype(std::span<const node_ref> inputs);

/// Promotes the inputs to the operation's operand dtype and broadcasts them to one shape.
node_ref make_operation(operation op, detail::operation_inputs inputs);
node_ref make_cast(const node_ref& input, dtype to);

/// Makes a staged node of the input. Returns tensor leaves and staged nodes unchanged. An
/// evaluation computes the input once, however many staged nodes it has (stages.2).
node_ref make_staged(const node_ref& input);

/// The same, but row-major without gaps: tensor leaves and staged nodes are staged again if they
/// are not.
node_ref make_contiguous(const node_ref& input);
node_ref make_reduction(const node_ref& input, reduction kind, const dims& axes, bool keep_axes,
                        double parameter);

node_ref make_scan(const node_ref& input, scan kind, index_t axis);

/// The reduction of the elements at positions p to p + width - 1 along an axis, for every p.
/// Throws   invalid_argument (the axis, the width, a dtype for which the reduction is not defined)
node_ref make_rolling(const node_ref& input, reduction kind, index_t width, index_t axis);

/// How far a walk goes: to the leaves of one pass, or further to the inputs of staged and generated
/// leaves.
enum class walk { within_a_pass, through_stages };

/// The matrix product, as `matmul`.
node_ref make_product(const node_ref& a, const node_ref& b);

/// The nodes that a node reads directly.
std::vector<node_ref> inputs_of(const node& value, walk reach = walk::within_a_pass);

/// The inputs of a generated leaf: tensor leaves or staged nodes.
std::vector<node_ref> generator_inputs(const node& leaf);

/// The node and all nodes that it is computed from, each once. Inputs come before the nodes that
/// read them.
std::vector<node_ref> post_order(const node_ref& root, walk reach = walk::within_a_pass);

/// The same without the nodes that are in `seen`. The nodes that it returns are added to `seen`. So
/// several walks of graphs with common parts visit each node once.
std::vector<node_ref> post_order(const node_ref& root, walk reach, std::set<const node*>& seen);

/// The node that a stage computes as a whole, with neither a reduction nor a scan nor a product;
/// null for other stages. The result has the node's elements and dtype, maybe in another shape.
const node* computed_as_a_whole(const detail::stage& made) noexcept;

/// The leaf of a stage whose elements are read from those tiles of a source in which they lie; null
/// for other stages.
const detail::indexed_leaf* read_from_tiles(const detail::stage& made) noexcept;

/// Whether the node is an operation or a cast, so that its elements are computed by kernels.
bool computes_elements(const node& value) noexcept;

}  // namespace shale::ops
