// Finds out whether an expression reads elements that are written while it is evaluated.
#pragma once

#include "ops/graph/graph.hpp"
#include "parallel/sources/axis_map.hpp"
#include "shale/expr.hpp"

namespace shale::ops {

/// Whether the computation of `value` reads an element of the tile source with that identity at one
/// place, but stores the result at another. `written` maps each element of `value` to the place
/// where it is stored. Reads of stages do not count, because stages are computed first.
bool reads_elsewhere(const detail::node_ref& value, const void* identity,
                     const parallel::axis_map& written);
bool reads_elsewhere(const expr& value, const void* identity, const parallel::axis_map& written);

/// Whether `value`, or a stage that it reads, is computed from a tensor that shares bytes with
/// `output`.
bool reads_bytes_of(const detail::node_ref& value, const tensor& output);

/// Whether an index of `leaf` is a tensor that shares bytes with `output`.
bool reads_indices_of(const detail::indexed_leaf& leaf, const tensor& output);

}  // namespace shale::ops
