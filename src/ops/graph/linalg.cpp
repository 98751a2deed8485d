#include "shale/linalg.hpp"

#include "core/allocating.hpp"
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

namespace {

executor& begin_call() {
  executor& on = executor::current();
  parallel::state_of(on).count.call();
  return on;
}

}  // namespace

tensor dot(const tensor& a, const tensor& b) {
  return detail::allocating([&] {
    if (a.rank() != 1 || b.rank() != 1) return eval(dot(expr(a), expr(b)));
    if (a.size() != b.size())
      throw error(errc::invalid_argument, "dot needs vectors of one length",
                  {"got shapes " + to_string(a.shape()) + " and " + to_string(b.shape())});
    return ops::inner_product(a, b, begin_call());
  });
}

tensor matmul(const tensor& a, const tensor& b) {
  return detail::allocating([&] { return ops::multiplied(a, b, begin_call()); });
}

expr matmul(const expr& a, const expr& b) {
  return detail::allocating(
      [&] { return ops::expr_of(ops::make_product(ops::node_of(a), ops::node_of(b))); });
}

expr dot(const expr& a, const expr& b) {
  if (a.rank() == 0 || b.rank() == 0) return a * b;
  if (a.rank() == 1 || b.rank() <= 2) return matmul(a, b);
  expr spread = a;
  for (index_t axis = 2; axis < b.rank(); ++axis) spread = spread.expand_dims(spread.rank() - 2);
  const expr product = matmul(spread, b);
  return product.moveaxis(-2, a.rank() - 2);
}

std::string blas_name() { return ops::blas_description(); }

}  // namespace shale
