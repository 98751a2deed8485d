// Operands of functions that are not passes: elements in memory.
#pragma once

#include "ops/graph/node_access.hpp"
#include "parallel/operands/aliases.hpp"
#include "shale/evaluate.hpp"
#include "shale/expr.hpp"
#include "storage/blocks/backing.hpp"

namespace shale::ops {

/// Whether the elements lie in memory already: the value is a tensor that is not mapped.
inline bool lies_in_memory(const expr& value) {
  const auto* leaf = std::get_if<detail::tensor_leaf>(&node_of(value)->content);
  return leaf && !detail::is_mapped(leaf->values.storage());
}

/// The elements of `value`. A tensor in memory is used in place, so it may change while it is used
/// (changing_operand.hpp). Other values are evaluated into memory of the current executor's pool.
/// Throws   as `eval`
inline tensor held_operand(const expr& value) {
  if (!lies_in_memory(value)) return eval(value);
  return std::get<detail::tensor_leaf>(node_of(value)->content).values;
}

/// The elements of `value`, which do not change when `out` is written.
inline tensor held_operand(const expr& value, const tensor& out) {
  const tensor held = held_operand(value);
  return parallel::may_overlap(out, held) ? held.clone() : held;
}

/// The elements of `value`, in row-major order without gaps.
inline tensor held_contiguous(const expr& value) {
  const tensor held = held_operand(value);
  return held.is_contiguous() ? held : eval(value);
}

}  // namespace shale::ops
