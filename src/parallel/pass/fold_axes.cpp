#include "shale/fold_axes.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/allocating.hpp"
#include "parallel/blocks/block_copy.hpp"
#include "parallel/executor/executor_state.hpp"
#include "parallel/fold/fold.hpp"
#include "parallel/pass/pass_loop.hpp"
#include "parallel/pass/prepare.hpp"
#include "parallel/pass/typed_operands.hpp"
#include "shale/error.hpp"

namespace shale::detail {

namespace {

// How many results of empty states are delivered together. Their states fit in the L2 cache.
constexpr index_t empty_results_at_once = 4096;

// The accumulators of a caller as states of a pass.
class caller_states final : public parallel::fold_states {
 public:
  // Results of a reduction are delivered to `into`, which is row-major. All must outlive this
  // object.
  caller_states(const fold_functions& functions, const tensor& into, memory_pool& pool) noexcept
      : functions_(functions), into_(into), pool_(pool) {}

  storage make(index_t results) const override {
    const std::size_t width = functions_.state_bytes;
    storage made = storage::allocate(width * static_cast<std::size_t>(results), &pool_);
    for (std::byte* state = made.data(); results > 0; --results, state += width)
      std::memcpy(state, functions_.identity, width);
    return made;
  }

  void merge(storage& into, const storage& from, index_t results) const override {
    calling_back(
        [&] { functions_.combine(functions_.context, into.data(), from.data(), results); });
  }

  void deliver(const storage& from, const layout& place) const override {
    const tensor block = tensor::empty(place.shape(), into_.dtype(), &pool_);
    calling_back(
        [&] { functions_.finish(functions_.context, from.data(), block.data(), place.size()); });
    parallel::copy_elements_here(
        into_.as_strided(place.shape(), place.strides(), into_.offset() + place.offset()), block);
  }

  // The results of no elements.
  void deliver_empty() const {
    for (index_t begin = 0; begin < into_.size(); begin += empty_results_at_once) {
      const index_t results = std::min(into_.size() - begin, empty_results_at_once);
      deliver(make(results), layout({results}, {1}, begin));
    }
  }

 private:
  const fold_functions& functions_;
  const tensor& into_;
  memory_pool& pool_;
};

// Calls the caller's functions for the blocks of a unit. The last operand is folded. In the second
// step of a scan, the results go to the first operand.
void fold_unit(const parallel::unit& here, const fold_functions& functions) {
  const std::size_t operands = here.bases.size();
  const std::size_t last = operands - 1;
  const auto width = static_cast<index_t>(functions.state_bytes);
  const index_t rank = here.over.rank();
  const index_t state_inner = here.state_strides[rank - 1] * width;
  const index_t state_outer = rank >= 2 ? here.state_strides[rank - 2] * width : 0;
  const bool scans = here.step == parallel::unit_step::scan;
  here.for_each_block([&](std::byte* const* data, const index_t* strides, index_t inner,
                          index_t outer, const parallel::block_position& position) {
    const folded_block block{
        {here.states + here.state_at(position) * width, state_inner, state_outer},
        {data[last], strides[last], strides[operands + last]},
        inner,
        outer,
        {data[0], strides[0], strides[operands]}};
    calling_back([&] { (scans ? functions.scan : functions.fold)(functions.context, block); });
  });
}

// The axes counted from the front.
dims axes_of(const dims& axes, index_t rank) {
  dims result;
  for (const index_t axis : axes) {
    result.push_back(normalize_axis(axis, rank));
    if (std::count(result.begin(), result.end(), result.back()) > 1)
      throw error(errc::invalid_argument, "an axis occurs twice", {"got axes " + to_string(axes)});
  }
  return result;
}

dims without(const dims& shape, const dims& axes) {
  dims kept;
  for (index_t axis = 0; axis < shape.size(); ++axis)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) kept.push_back(shape[axis]);
  return kept;
}

}  // namespace

tensor run_reduce_axes(const apply_operand& values, const dims& axes, dtype result,
                       const fold_functions& functions) {
  return allocating([&] {
    executor& on = parallel::begin_call();
    auto operands = parallel::typed_operands(std::span(&values, 1));
    const dims shape = values.values.shape();
    const dims folded = axes_of(axes, shape.size());
    const tensor into = tensor::empty(without(shape, folded), result, &on.pool());
    const caller_states states(functions, into, on.pool());
    parallel::state_of(on).count.written(into.size_bytes());
    if (element_count(shape) == 0) {
      states.deliver_empty();
      return into;
    }
    parallel::pass_loop loop(std::move(operands), {.states = &states, .folded = folded}, on);
    loop.run([&](const parallel::unit& here) { fold_unit(here, functions); });
    return into;
  });
}

void run_scan_axis(const apply_operand& out, const apply_operand& values, index_t axis,
                   const fold_functions& functions) {
  allocating([&] {
    executor& on = parallel::begin_call();
    auto operands = parallel::typed_operands(std::array{out, values});
    operands[0].updated = false;
    const dims& shape = out.values.shape();
    const index_t along = normalize_axis(axis, shape.size());
    if (element_count(shape) == 0) {
      parallel::input_copies none(on);
      return parallel::prepare(operands, none);
    }
    const caller_states states(functions, out.values, on.pool());
    parallel::pass_loop loop(
        std::move(operands),
        {.states = &states, .folded = {along}, .scans = true, .positions = true}, on);
    loop.run([&](const parallel::unit& here) { fold_unit(here, functions); });
  });
}

}  // namespace shale::detail
