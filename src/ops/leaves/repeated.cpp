#include "ops/leaves/repeated.hpp"

#include <utility>

#include "ops/graph/node_access.hpp"

namespace shale::ops {

expr repeated(const expr& a, const dims& shape, const dims& modulus, const dims& divisor) {
  if (const auto* constant = std::get_if<detail::constant_leaf>(&node_of(a)->content))
    return expr_of(make_constant(constant->value, shape, a.dtype(), false));
  auto input = make_staged(node_of(a));
  return expr_of(make_node(
      a.dtype(), shape,
      detail::repeated_leaf{std::move(input), axis_map::identity(shape), modulus, divisor}));
}

}  // namespace shale::ops
