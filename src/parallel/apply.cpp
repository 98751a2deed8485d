#include "shale/apply.hpp"

#include <algorithm>
#include <string>

#include "parallel/executor_state.hpp"
#include "parallel/operands.hpp"
#include "shale/error.hpp"

namespace shale::detail {

namespace {

using parallel::loop_operand;

std::vector<loop_operand> checked(const std::vector<apply_operand>& operands) {
  std::vector<loop_operand> result;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const auto& operand = operands[k];
    if (operand.values.dtype() != operand.type)
      throw error(
          errc::invalid_argument, "an operand's dtype is not the callable's",
          {"operand " + std::to_string(k) + " is " + std::string(name(operand.values.dtype())) +
               ", its parameter is " + std::string(name(operand.type)),
           "change the parameter's type, or convert with cast"});
    result.push_back({operand.values, operand.written});
  }
  return result;
}

// Counts the call and what it reads and writes; returns the bytes of all operands.
std::uint64_t count_call(std::span<const loop_operand> operands, executor& on) {
  auto& count = on.state().count;
  count.calls.fetch_add(1, std::memory_order_relaxed);
  std::uint64_t total = 0;
  for (const auto& operand : operands) {
    auto& bytes = operand.written ? count.bytes_written : count.bytes_read;
    bytes.fetch_add(operand.values.size_bytes(), std::memory_order_relaxed);
    total += operand.values.size_bytes();
  }
  return total;
}

void run(std::span<loop_operand> operands, const parallel::plan& over, apply_block block,
         void* context, executor& on, std::uint64_t total_bytes) {
  parallel::for_each_block(
      over, operands, on,
      [&](std::byte* const* data, const index_t* strides, index_t inner, index_t outer, auto&&...) {
        block(context, data, strides, inner, outer);
      },
      total_bytes);
}

}  // namespace

void run_apply(const std::vector<apply_operand>& operands, apply_block block, void* context,
               executor* on) {
  executor& chosen = parallel::choose(on);
  auto prepared = checked(operands);
  parallel::prepare(prepared, chosen);
  run(prepared, parallel::make_plan(prepared), block, context, chosen,
      count_call(prepared, chosen));
  parallel::conclude(prepared);
}

lane_geometry run_lanes(const std::vector<apply_operand>& operands, index_t axis,
                        void (*start)(void*, const lane_geometry&), apply_block block,
                        void* context, executor* on) {
  executor& chosen = parallel::choose(on);
  auto prepared = checked(operands);
  parallel::prepare(prepared, chosen);
  const tensor& first = prepared[0].values;
  const index_t along = normalize_axis(axis, first.rank());
  lane_geometry geometry;
  geometry.size = first.shape()[along];
  for (std::size_t k = 0; k < prepared.size(); ++k)
    geometry.strides[k] = prepared[k].values.strides()[along];
  start(context, geometry);
  if (first.size() == 0) return geometry;
  // The plan runs over lane starts; the whole lanes are what is read and written.
  std::vector<loop_operand> starts;
  starts.reserve(prepared.size());
  for (const auto& operand : prepared)
    starts.push_back({operand.values.select(along, 0), operand.written});
  const parallel::plan over =
      parallel::make_plan(starts, {.elements_max = std::max<index_t>(32768 / geometry.size, 1)});
  run(starts, over, block, context, chosen, count_call(prepared, chosen));
  parallel::conclude(prepared);
  return geometry;
}

void run_reduce(const tensor& values, dtype type, void (*start)(void*, index_t tiles),
                reduce_block block, void* context, executor* on) {
  executor& chosen = parallel::choose(on);
  auto prepared = checked({apply_operand{values, type, false}});
  parallel::prepare(prepared, chosen);
  const parallel::plan over = parallel::make_plan(prepared);
  start(context, over.tile_count());
  const std::uint64_t total_bytes = count_call(prepared, chosen);
  parallel::for_each_block(
      over, prepared, chosen,
      [&](std::byte* const* data, const index_t* strides, index_t inner, index_t outer,
          const parallel::block_position&, index_t tile,
          int) { block(context, tile, data, strides, inner, outer); },
      total_bytes);
  parallel::conclude(prepared);
}

}  // namespace shale::detail
