#include "shale/linalg.hpp"

#include <cmath>

#include "core/allocating.hpp"
#include "ops/functions/linear_algebra/contraction.hpp"
#include "ops/graph/node_access.hpp"
#include "ops/linalg/gemm.hpp"
#include "ops/linalg/inner_product.hpp"
#include "ops/linalg/products.hpp"
#include "parallel/executor/executor_state.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"
#include "shale/evaluate.hpp"
#include "shale/manipulation.hpp"

namespace shale {

tensor dot(const tensor& a, const tensor& b) {
  return detail::allocating([&] {
    if (a.rank() != 1 || b.rank() != 1) return eval(dot(expr(a), expr(b)));
    if (a.size() != b.size())
      throw error(errc::invalid_argument, "dot needs vectors of one length",
                  {"got shapes " + to_string(a.shape()) + " and " + to_string(b.shape())});
    return ops::inner_product(a, b, parallel::begin_call());
  });
}

tensor matmul(const tensor& a, const tensor& b) {
  return detail::allocating([&] { return ops::multiplied(a, b, parallel::begin_call()); });
}

expr matmul(const expr& a, const expr& b) {
  return detail::allocating(
      [&] { return ops::expr_of(ops::make_product(ops::node_of(a), ops::node_of(b))); });
}

expr dot(const expr& a, const expr& b) {
  if (a.rank() == 0 || b.rank() == 0) return a * b;
  if (a.rank() == 1 && b.rank() == 1 && a.size() == b.size())
    return detail::allocating([&] { return ops::sum_of_products(a, b, 1); });
  if (a.rank() == 1 || b.rank() <= 2) return matmul(a, b);
  expr spread = a;
  for (index_t axis = 2; axis < b.rank(); ++axis) spread = spread.expand_dims(spread.rank() - 2);
  const expr product = matmul(spread, b);
  return product.moveaxis(-2, a.rank() - 2);
}

expr outer(const expr& a, const expr& b) {
  return detail::allocating([&] {
    const dtype type = ops::promoted_dtype(a, b);
    const expr left = ops::adapted(a, type), right = ops::adapted(b, type);
    return left.ravel().expand_dims(1) * right.ravel();
  });
}

expr trace(const expr& a, index_t diagonal) {
  return detail::allocating([&] {
    if (a.rank() < 2)
      throw error(errc::invalid_argument, "trace needs at least two axes",
                  {"got shape " + to_string(a.shape())});
    return sum(a.diagonal(diagonal, -2, -1), {-1});
  });
}

expr vector_norm(const expr& a, double order, const axes_option& axes, keepdims keep) {
  return detail::allocating([&] {
    if (std::isnan(order)) throw error(errc::invalid_argument, "the order of a norm cannot be NaN");
    // In floats, because the magnitude of the lowest integer is not an integer of its dtype.
    const expr size = abs(astype(a, sqrt(a).dtype()));
    if (std::isinf(order)) return order > 0 ? max(size, axes, keep) : min(size, axes, keep);
    if (order == 0) return astype(count_nonzero(size, axes, keep), size.dtype());
    if (order == 1) return sum(size, axes, keep);
    if (order == 2) return sqrt(sum(square(size), axes, keep));
    return pow(sum(pow(size, order), axes, keep), 1 / order);
  });
}

std::string blas_name() { return ops::blas_description(); }

}  // namespace shale
