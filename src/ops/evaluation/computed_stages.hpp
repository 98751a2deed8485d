// Computes the stages of an expression in advance, for callers that evaluate it part by part.
#pragma once

#include "ops/evaluation/compile.hpp"
#include "shale/expr.hpp"

namespace shale::ops {

/// Computes the stages of an expression: reductions, scans, rolling reductions, products, and
/// values that are computed as a whole. Returns an equal expression that holds their results in
/// memory, so that evaluating its parts does not compute them again. Returns the expression itself
/// if it has no stages.
/// Cost     the evaluation of the stages, and a copy of the graph down to them
/// Throws   as `eval`
expr with_computed_stages(const expr& value);

/// An equal node that holds the results of the stages it reads. `values` has all of them.
/// Cost     a copy of the graph down to the stages
node_ref with_values(const node_ref& value, const staged_values& values);

}  // namespace shale::ops
