// Makes views of nodes by pushing them down to the leaves (graph.2).
#pragma once

#include <functional>

#include "ops/graph/graph.hpp"
#include "parallel/sources/axis_map.hpp"
#include "shale/region.hpp"

namespace shale::ops {

/// A view is pushed through a graph by copying the graph. A loop over `x = x.flip(axes) + x` would
/// so double the graph each time. Graphs with more nodes are staged.
constexpr std::size_t viewed_nodes_max = 2000;

/// A view of a node by an axis map.
node_ref make_view(const node_ref& value, const axis_map& map);

/// The elements of a node in a box, which lies inside its shape.
node_ref make_part(const node_ref& value, const region& box);

/// The node as an operand of a tile source, whose loads evaluate parts of it. It is staged if its
/// graph is too large to be copied for each part, or if it reads a source that must not nest deeper
/// (nested.1).
node_ref make_operand_of_parts(const node_ref& value);

/// The elements in row-major order in another shape. If strides cannot express the view, the node
/// is staged.
node_ref make_reshape(const node_ref& value, const dims& shape);

/// As make_reshape, but never stages.
/// Throws   invalid_argument (strides cannot express the view)
node_ref make_reshape_view(const node_ref& value, const dims& shape);

/// A view that an axis map cannot express, such as `unfold` and `diagonal`. `change` maps a layout
/// of the node's shape to the view's layout. It is applied to every leaf in memory, or to the
/// staged value.
node_ref make_relayout(const node_ref& value, const std::function<layout(const layout&)>& change);

}  // namespace shale::ops
