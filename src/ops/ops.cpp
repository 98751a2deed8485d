#include "shale/ops.hpp"

namespace shale {

void fill(const tensor& out, const scalar& value, executor* on) {
  eval_into(out, full(out.shape(), value, value.type()), on);
}

void copy(const tensor& to, const expr& from, executor* on) { eval_into(to, from, on); }

tensor full_tensor(const dims& shape, const scalar& value, dtype type, executor* on) {
  return eval(full(shape, value, type), on);
}

bool equal(const expr& a, const expr& b, executor* on) {
  if (!(a.shape() == b.shape())) return false;
  return eval(all(a == b), on).item() == scalar(true);
}

}  // namespace shale
