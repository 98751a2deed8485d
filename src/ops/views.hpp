// Views of nodes, pushed down to the leaves (graph.2).
#pragma once

#include "ops/axis_map.hpp"
#include "ops/graph.hpp"

namespace shale::ops {

/// A view of a node by any map from its axes.
node_ref make_view(const node_ref& of, const axis_map& map);

/// The same elements in row-major order under another shape; staged where no view can say it.
node_ref make_reshape(const node_ref& of, const dims& shape);

}  // namespace shale::ops
