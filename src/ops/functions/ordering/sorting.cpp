#include "shale/sorting.hpp"

#include "core/allocating.hpp"
#include "ops/functions/operands/held_operand.hpp"
#include "ops/sorting/row_sort.hpp"

namespace shale {

using namespace ops;
using detail::allocating;

namespace {

using sort_function = void (*)(const tensor& from, const tensor& out, bool descends, executor& on);

// Sorted along the last axis. What is held of the operand is released when this returns.
tensor sorted_rows(const expr& x, descending order, dtype type, sort_function sort_all) {
  executor& on = executor::current();
  const tensor from = held_contiguous(x);
  const tensor out = tensor::empty(from.shape(), type, &on.pool());
  sort_all(from, out, order == descending::yes, on);
  return out;
}

tensor sorted_along(const expr& x, index_t axis, descending order, dtype type,
                    sort_function sort_all) {
  const index_t along = normalize_axis(axis, x.rank());
  const tensor out = sorted_rows(x.moveaxis(along, -1), order, type, sort_all);
  return along == x.rank() - 1 ? out : eval(expr(out).moveaxis(-1, along));
}

}  // namespace

tensor sort(const expr& x, index_t axis, descending order) {
  return allocating([&] {
    require_order(x.dtype(), "sort");
    return sorted_along(x, axis, order, x.dtype(), sort_rows);
  });
}

tensor argsort(const expr& x, index_t axis, descending order) {
  return allocating([&] {
    require_order(x.dtype(), "argsort");
    return sorted_along(x, axis, order, dtype::int64, argsort_rows);
  });
}

}  // namespace shale
