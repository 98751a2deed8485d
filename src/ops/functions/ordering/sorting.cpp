#include "shale/sorting.hpp"

#include "core/allocating.hpp"
#include "core/saturating.hpp"
#include "ops/evaluation/computed_stages.hpp"
#include "ops/functions/operands/held_operand.hpp"
#include "ops/functions/operands/slabs.hpp"
#include "ops/sorting/row_sort.hpp"
#include "ops/sorting/sorted_runs.hpp"
#include "parallel/executor/executor_state.hpp"

namespace shale {

using namespace ops;
using detail::allocating;

namespace {

// Sorted along the last axis.
tensor sorted_rows(const tensor& from, const file_order& order, executor& on) {
  const tensor out = tensor::empty(from.shape(), order.result(), &on.pool());
  (order.as_indices ? argsort_rows : sort_rows)(from, out, order.descends, on);
  return out;
}

void write_lanes(const expr& part, const file_order& order, executor& on, detail::scratch_file& out,
                 std::uint64_t at) {
  const tensor sorted = sorted_rows(held_part(part), order, on);
  out.write({sorted.data(), sorted.size_bytes()}, at);
  parallel::state_of(on).count.written(sorted.size_bytes());
}

void add_run(const expr& part, const file_order& order, executor& on, sorted_runs& runs) {
  const tensor from = held_part(part);
  const tensor elements = sorted_rows(from, {order.type, order.descends, false}, on);
  runs.add(elements, order.as_indices ? sorted_rows(from, order, on) : tensor());
}

// The same of an operand that does not fit in memory, slab by slab, into a file. If a lane is
// longer than a slab, its slabs become runs that are merged.
tensor sorted_in_file(const expr& x, const file_order& order, executor& on) {
  const expr ready = with_computed_stages(x);
  const index_t length = x.shape(-1);
  const dims slab = slab_shape(x.shape(), sorted_at_once(order, on));
  const std::size_t item = item_bytes(order.result());
  const parallel::held_tokens held(parallel::state_of(on).tokens, file_sort_bytes(on));
  sorted_runs runs(order, length, slab.back(), on);
  detail::scratch_file out(detail::saturating_mul(static_cast<std::uint64_t>(x.size()), item));
  std::uint64_t at = 0;
  for_each_slab_of(x.shape(), slab, [&](const region& box) {
    const expr part = part_of(ready, box);
    if (slab.back() == length) {
      write_lanes(part, order, on, out, at);
      at += static_cast<std::uint64_t>(part.size()) * item;
      return;
    }
    add_run(part, order, on, runs);
    if (!runs.complete()) return;
    runs.merge_into(out, at);
    at += static_cast<std::uint64_t>(length) * item;
  });
  return tensor(out.map(static_cast<std::size_t>(at)), order.result(), layout(x.shape()));
}

tensor sorted_along(const expr& x, index_t axis, const file_order& order) {
  executor& on = executor::current();
  const index_t along = normalize_axis(axis, x.rank());
  const expr lanes = x.moveaxis(along, -1);
  const bool is_last = along == x.rank() - 1;
  if (!lies_in_memory(x) && x.size() / 2 > sorted_at_once(order, on)) {
    const tensor out = sorted_in_file(lanes, order, on);
    return is_last ? out : out.moveaxis(-1, along);
  }
  const tensor out = sorted_rows(held_contiguous(lanes), order, on);
  return is_last ? out : eval(expr(out).moveaxis(-1, along));
}

}  // namespace

tensor sort(const expr& x, index_t axis, descending order) {
  return allocating([&] {
    require_order(x.dtype(), "sort");
    return sorted_along(x, axis, {x.dtype(), order == descending::yes, false});
  });
}

tensor argsort(const expr& x, index_t axis, descending order) {
  return allocating([&] {
    require_order(x.dtype(), "argsort");
    return sorted_along(x, axis, {x.dtype(), order == descending::yes, true});
  });
}

}  // namespace shale
