#include "shale/apply.hpp"

#include <algorithm>
#include <array>

#include "core/allocating.hpp"
#include "parallel/executor/executor_state.hpp"
#include "parallel/mapped/stored_checksums.hpp"
#include "parallel/pass/element_indices.hpp"
#include "parallel/pass/pass_loop.hpp"
#include "parallel/pass/small_apply.hpp"
#include "parallel/pass/typed_operands.hpp"

namespace shale::detail {

namespace {

using parallel::loop_operand;

// Requires that an output with lanes of length 0 has the common extents along the other axes, like
// any other output. The pass cannot check this once `replace_empty_lanes` has replaced the lanes.
void require_empty_outputs(std::span<const loop_operand> operands, index_t rank, index_t along) {
  const auto is_empty = [&](const tensor& values) {
    const index_t own = along - (rank - values.rank());
    return own >= 0 && values.shape()[own] == 0;
  };
  if (std::none_of(operands.begin(), operands.end(), [&](const loop_operand& operand) {
        return operand.written && is_empty(operand.values);
      }))
    return;
  dims shape;
  for (const auto& operand : operands) {
    dims other = operand.values.shape();
    const index_t own = along - (rank - other.size());
    if (own >= 0) other[own] = 1;
    shape = broadcast_shapes(shape, other);
  }
  shape[along] = 0;
  for (const auto& operand : operands)
    if (operand.written && is_empty(operand.values))
      parallel::require_output(operand.values, shape);
}

// A pass visits the first element of each lane, and a lane of length 0 has none. Replaces such
// lanes along the axis `along` by lanes of one element, which no kernel reads. Returns whether it
// did.
bool replace_empty_lanes(loop_operand& operand, index_t along) {
  if (along < 0 || operand.values.shape()[along] != 0) return false;
  dims shape = operand.values.shape();
  shape[along] = 1;
  operand = {.values = tensor::zeros({}, operand.values.dtype()).broadcast_to(shape)};
  return true;
}

// Calls `block` for every block of a unit.
void run_blocks(const parallel::unit& here, apply_block block, void* context) {
  here.for_each_block(
      [&](std::byte* const* data, const index_t* strides, index_t inner, index_t outer, auto&&) {
        const auto run = [&] { block(context, data, strides, inner, outer); };
        calling_back(run);
      });
}

// The most elements that are visited in index order between two checks for cancellation.
constexpr index_t run_elements_max = index_t{1} << 16;

// Calls `run` for runs along the last axis, in index order.
template <class Run>
void in_order(std::span<const loop_operand> operands, const dims& shape, Run run) {
  if (element_count(shape) == 0) return;
  const index_t last = shape.size() - 1;
  std::array<std::byte*, apply_operands_max> data{};
  std::array<index_t, 2 * apply_operands_max> strides{};  // the inner strides, then the outer ones
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const tensor& values = operands[k].values;
    data[k] = values.data();
    if (last >= 0) strides[k] = values.stride(last) * static_cast<index_t>(values.item_bytes());
  }
  dims at = dims::filled(shape.size(), 0);
  for (;;) {
    const index_t length = last >= 0 ? shape[last] : 1;
    for (index_t first = 0; first < length; first += run_elements_max) {
      std::array<std::byte*, apply_operands_max> begin = data;
      for (std::size_t k = 0; k < operands.size(); ++k) begin[k] += first * strides[k];
      run(begin.data(), strides.data(), std::min(length - first, run_elements_max));
    }
    index_t axis = last - 1;
    for (; axis >= 0; --axis) {
      const bool wraps = ++at[axis] == shape[axis];
      if (wraps) at[axis] = 0;
      for (std::size_t k = 0; k < operands.size(); ++k) {
        const tensor& values = operands[k].values;
        const index_t step = values.stride(axis) * static_cast<index_t>(values.item_bytes());
        data[k] += wraps ? -step * (shape[axis] - 1) : step;
      }
      if (!wraps) break;
    }
    if (axis < 0) return;
  }
}

// Counts what a call that runs no pass reads and writes.
void count_bytes(std::span<const loop_operand> operands, executor& on) {
  auto& count = parallel::state_of(on).count;
  count.read(parallel::bytes_read_once(operands));
  for (const auto& operand : operands)
    if (operand.written) count.written(operand.values.size_bytes());
}

}  // namespace

void run_apply(std::span<const apply_operand> operands, apply_block block, void* context) {
  allocating([&] {
    executor& on = parallel::begin_call();
    if (parallel::small_apply small(operands, on); small.applies())
      return small.run(
          [&](std::byte* const* data, const index_t* strides, index_t inner, index_t outer) {
            calling_back([&] { block(context, data, strides, inner, outer); });
          });
    parallel::pass_loop loop(parallel::typed_operands(operands), {}, on);
    loop.run([&](const parallel::unit& here) { run_blocks(here, block, context); });
  });
}

void run_indexed(std::span<const apply_operand> operands, indexed_block block, void* context) {
  allocating([&] {
    auto prepared = parallel::typed_operands(operands);
    index_t rank = 0;
    for (const auto& operand : prepared) rank = std::max(rank, operand.values.rank());
    parallel::pass_loop loop(std::move(prepared), {.indices = true}, parallel::begin_call());
    loop.run([&](const parallel::unit& here) {
      here.for_each_block([&](std::byte* const* data, const index_t* strides, index_t inner,
                              index_t outer, const parallel::block_position& position) {
        const block_indices indices = parallel::indices_of(here, position, rank);
        calling_back([&] { block(context, data, strides, inner, outer, indices); });
      });
    });
  });
}

void run_lanes(std::span<const apply_operand> operands, index_t axis,
               void (*start)(void*, const lane_sizes&), apply_block block, void* context) {
  allocating([&] {
    auto prepared = parallel::typed_operands(operands);
    index_t rank = 0;
    for (const auto& operand : prepared) rank = std::max(rank, operand.values.rank());
    const index_t along = normalize_axis(axis, rank);
    require_empty_outputs(prepared, rank, along);
    std::array<bool, apply_operands_max> empty{};
    for (std::size_t k = 0; k < operands.size(); ++k)
      empty[k] = replace_empty_lanes(prepared[k], along - (rank - prepared[k].values.rank()));
    parallel::pass_loop loop(std::move(prepared), {.lane_axis = along}, parallel::begin_call());
    lane_sizes lanes;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      lanes.sizes[k] = empty[k] ? 0 : loop.lane_size(k);
      lanes.strides[k] = loop.lane_stride(k);
    }
    start(context, lanes);
    loop.run([&](const parallel::unit& here) { run_blocks(here, block, context); });
  });
}

void run_reduce(const tensor& values, dtype type, void (*start)(void*, index_t tiles),
                reduce_block block, void* context) {
  allocating([&] {
    parallel::pass_loop loop(
        parallel::typed_operands(std::array{apply_operand{values, type, false}}),
        {.fixed_units = true}, parallel::begin_call());
    start(context, loop.unit_count());
    loop.run([&](const parallel::unit& here) {
      here.for_each_block([&](std::byte* const* data, const index_t* strides, index_t inner,
                              index_t outer, auto&&) {
        calling_back([&] { block(context, here.number, data, strides, inner, outer); });
      });
    });
  });
}

void run_in_order(std::span<const apply_operand> operands, apply_block block, void* context) {
  allocating([&] {
    executor& on = parallel::begin_call();
    auto prepared = parallel::typed_operands(operands);
    dims shape;
    for (const auto& operand : prepared) shape = broadcast_shapes(shape, operand.values.shape());
    for (auto& operand : prepared) {
      if (operand.written) parallel::require_output(operand.values, shape);
      else operand.values = operand.values.broadcast_to(shape);
      operand.values.storage().check();
      if (!operand.written) parallel::compare_checksums(operand.values, on);
    }
    count_bytes(prepared, on);
    {
      const parallel::version_bumps bumps(prepared);
      in_order(prepared, shape, [&](std::byte* const* data, const index_t* strides, index_t inner) {
        parallel::require_not_cancelled(on);
        calling_back([&] { block(context, data, strides, inner, 1); });
      });
    }
    parallel::check_storages(prepared);
  });
}

}  // namespace shale::detail
