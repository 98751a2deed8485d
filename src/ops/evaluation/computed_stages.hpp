// Computes the stages of an expression ahead, for callers that evaluate it part by part.
#pragma once

#include "shale/expr.hpp"

namespace shale::ops {

/// An equal expression whose stages (reductions, scans, products, values that are computed as a
/// whole) have been computed and are held in memory. So evaluating parts of it computes none of
/// them again. If there are none, returns the expression itself.
/// Cost     the evaluation of the stages, and a copy of the graph down to them
/// Throws   as `eval`
expr with_computed_stages(const expr& value);

}  // namespace shale::ops
