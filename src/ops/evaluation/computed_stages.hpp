// Computes the stages of an expression ahead, for callers that evaluate it part by part.
#pragma once

#include "shale/expr.hpp"

namespace shale::ops {

/// Computes the stages of an expression: reductions, scans, products, and values that are computed
/// as a whole. Returns an equal expression that holds their results in memory, so that evaluating
/// its parts does not compute them again. Returns the expression itself if it has no stages.
/// Cost     the evaluation of the stages, and a copy of the graph down to them
/// Throws   as `eval`
expr with_computed_stages(const expr& value);

}  // namespace shale::ops
