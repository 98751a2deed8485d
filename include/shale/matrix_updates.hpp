// Products that are added to a tensor in place: out = beta * out + alpha * product.
//
//   addmm(c, a, b, {.alpha = -1});          // c -= a @ b
//   addmv(y, a, x, {.beta = 0});            // y = a @ x
//
// The operands may be parts of `out`, or overlap it in any way: their values before the call are
// used. `out` may have any layout. If beta is 0, the elements of `out` are not read, so that a NaN
// in them does not propagate.
// Shape    that of `out` is exactly that of the product. The dtype of `out` must be the one to which
//          the dtypes of all operands and of `out` promote. Operands are converted to it (float32
//          for float16 and bfloat16); products, scaling and sums are computed in that dtype
// Cost     the product, which is held in memory, except by addr; then one pass over `out`. Operands
//          of another dtype than the one computed in are converted as a whole, and held
// Throws   invalid_argument (shapes; dtypes; a weight that the dtype cannot hold), and as
//          `eval_into`
// Threads  no other thread may use the elements of `out` meanwhile
#pragma once

#include "shale/expr.hpp"

namespace [[gnu::visibility("default")]] shale {

/// The factor of the old elements of `out` (beta), and that of the product (alpha).
struct update_weights {
  scalar beta = 1;
  scalar alpha = 1;
};

/// A matrix product, as gemm of BLAS: (m, n) from (m, k) and (k, n).
void addmm(const tensor& out, const expr& a, const expr& b, const update_weights& weights = {});

/// The product of a matrix and a vector, as gemv: (m) from (m, k) and (k).
void addmv(const tensor& out, const expr& a, const expr& x, const update_weights& weights = {});

/// The products of all pairs of elements of two vectors, as ger: (m, n) from (m) and (n).
/// Cost     one pass
void addr(const tensor& out, const expr& x, const expr& y, const update_weights& weights = {});

/// The products of a batch of matrices: (b, m, n) from (b, m, k) and (b, k, n).
void baddbmm(const tensor& out, const expr& a, const expr& b, const update_weights& weights = {});

/// The sum of the products of a batch of matrices: (m, n) from (b, m, k) and (b, k, n).
/// Cost     one product with the inner extent b * k. `a` is copied if b and k cannot be merged
void addbmm(const tensor& out, const expr& a, const expr& b, const update_weights& weights = {});

}  // namespace shale
