#include "shale/matrix_updates.hpp"

#include <string>

#include "core/allocating.hpp"
#include "core/widened.hpp"
#include "ops/functions/linear_algebra/contraction.hpp"
#include "ops/linalg/products.hpp"
#include "shale/creation.hpp"
#include "shale/elementwise.hpp"
#include "shale/error.hpp"
#include "shale/linalg.hpp"

namespace shale {

using namespace ops;
using detail::allocating;

namespace {

// The operands of an update, converted to the dtype in which it is computed.
struct update_operands {
  const char* function;
  expr a;
  expr b;
  dtype compute;

  update_operands(const char* name, const tensor& out, const expr& left, index_t left_rank,
                  const expr& right, index_t right_rank)
      : function(name), a(left), b(right) {
    if (a.rank() != left_rank || b.rank() != right_rank)
      throw error(errc::invalid_argument,
                  std::string(function) + " needs operands with " + std::to_string(left_rank) +
                      " and " + std::to_string(right_rank) + " axes",
                  {"got shapes " + to_string(a.shape()) + " and " + to_string(b.shape())});
    const dtype product = product_dtype(a.dtype(), b.dtype());
    if (product_dtype(product, out.dtype()) != out.dtype())
      throw error(errc::invalid_argument,
                  std::string(function) + ": the output cannot hold the products",
                  {"got products of " + std::string(shale::name(product)) + " for " +
                       std::string(shale::name(out.dtype())),
                   "cast the operands with astype, or update a wider tensor"});
    compute = detail::widened(out.dtype());
    a = astype(a, compute);
    b = astype(b, compute);
  }
};

void update(const tensor& out, const update_operands& of, const expr& product,
            const update_weights& weights) {
  if (!(product.shape() == out.shape()))
    throw error(errc::invalid_argument,
                std::string(of.function) + ": the output has another shape than the product",
                {"got " + to_string(out.shape()) + ", wanted " + to_string(product.shape())});
  const expr alpha = full({}, weights.alpha, of.compute), beta = full({}, weights.beta, of.compute);
  const expr scaled = weights.alpha == scalar(1) ? product : alpha * product;
  if (weights.beta == scalar(0)) return eval_into(out, scaled);
  const expr before = astype(out, of.compute);
  eval_into(out, (weights.beta == scalar(1) ? before : beta * before) + scaled);
}

}  // namespace

void addmm(const tensor& out, const expr& a, const expr& b, const update_weights& weights) {
  allocating([&] {
    const update_operands of("addmm", out, a, 2, b, 2);
    update(out, of, matmul(of.a, of.b), weights);
  });
}

void addmv(const tensor& out, const expr& a, const expr& x, const update_weights& weights) {
  allocating([&] {
    const update_operands of("addmv", out, a, 2, x, 1);
    update(out, of, matmul(of.a, of.b), weights);
  });
}

void addr(const tensor& out, const expr& x, const expr& y, const update_weights& weights) {
  allocating([&] {
    const update_operands of("addr", out, x, 1, y, 1);
    update(out, of, of.a.expand_dims(1) * of.b, weights);
  });
}

void baddbmm(const tensor& out, const expr& a, const expr& b, const update_weights& weights) {
  allocating([&] {
    const update_operands of("baddbmm", out, a, 3, b, 3);
    if (of.a.shape(0) != of.b.shape(0))
      throw error(errc::invalid_argument, "baddbmm needs batches of one length",
                  {"got shapes " + to_string(a.shape()) + " and " + to_string(b.shape())});
    update(out, of, matmul(of.a, of.b), weights);
  });
}

void addbmm(const tensor& out, const expr& a, const expr& b, const update_weights& weights) {
  allocating([&] {
    const update_operands of("addbmm", out, a, 3, b, 3);
    if (of.a.shape(0) != of.b.shape(0) || of.a.shape(2) != of.b.shape(1))
      throw error(errc::invalid_argument, "addbmm: the matrices do not fit each other",
                  {"got shapes " + to_string(a.shape()) + " and " + to_string(b.shape())});
    // The axes of matrices have the names batch 0, rows 1, inner 2 and columns 3.
    const name_set kept(0b1010);
    update(out, of, contracted({of.a, {0, 1, 2}}, {of.b, {0, 2, 3}}, kept).values, weights);
  });
}

}  // namespace shale
