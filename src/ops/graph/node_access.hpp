// Converts between expressions, which are public, and their nodes.
#pragma once

#include <utility>

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

/// Makes the expression of an elementwise operation.
/// Throws   out_of_memory, and as make_operation
expr operated(operation op, const expr& a);
expr operated(operation op, const expr& a, const expr& b);

}  // namespace shale::ops
