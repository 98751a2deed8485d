// Converts between expressions, which are public, and their nodes.
#pragma once

#include <optional>
#include <utility>
#include <variant>

#include "ops/graph/graph.hpp"
#include "shale/expr.hpp"

namespace shale::detail {

struct node_access {
  /// Throws   invalid_argument for an expression that was moved from
  static const node_ref& node(const expr& value);
  static expr made(node_ref value) noexcept { return expr(std::move(value)); }
};

}  // namespace shale::detail

namespace shale::ops {

inline const node_ref& node_of(const expr& value) { return detail::node_access::node(value); }
inline expr expr_of(node_ref node) noexcept { return detail::node_access::made(std::move(node)); }

/// The number of a weak constant, which was written in C++ and has no dtype yet; nullopt for any
/// other expression.
inline std::optional<scalar> weak_number(const expr& value) {
  const node_ref& own = node_of(value);
  if (!is_weak(*own)) return std::nullopt;
  return std::get<detail::constant_leaf>(own->content).value;
}

/// The dtype to which an elementwise operation promotes its operands.
/// Throws   as promoted_dtype of nodes
inline dtype promoted_dtype(const expr& a, const expr& b) {
  const node_ref nodes[] = {node_of(a), node_of(b)};
  return promoted_dtype(nodes);
}

/// The operand; a weak constant is converted to `type`, so that its views keep that dtype.
inline expr adapted(const expr& operand, dtype type) {
  const node_ref& own = node_of(operand);
  return is_weak(*own) ? expr_of(make_cast(own, type)) : operand;
}

/// Makes the expression of an elementwise operation.
/// Throws   out_of_memory, and as make_operation
expr operated(operation op, const expr& a);
expr operated(operation op, const expr& a, const expr& b);

}  // namespace shale::ops
