// Evaluates expressions: runs the passes of a pass_sequence.
//
// `explain` goes through the same passes, with placeholders that have no elements, and adds up
// their costs.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "core/allocating.hpp"
#include "core/saturating.hpp"
#include "ops/evaluation/compile.hpp"
#include "ops/evaluation/pass_sequence.hpp"
#include "ops/evaluation/small_evaluation.hpp"
#include "ops/evaluation/source_reads.hpp"
#include "ops/graph/node_access.hpp"
#include "ops/kernels/dispatch/dispatch.hpp"
#include "ops/leaves/indexed_tiles.hpp"
#include "parallel/executor/executor_state.hpp"
#include "parallel/sources/check_source.hpp"
#include "shale/error.hpp"
#include "shale/evaluate.hpp"
#include "shale/expr.hpp"
#include "shale/linalg.hpp"
#include "shale/tile_source.hpp"
#include "storage/mapped/address_reservation.hpp"
#include "storage/system/pages.hpp"

namespace shale {

namespace {

using namespace ops;
using namespace detail;

tensor allocate_result(const dims& shape, dtype type, executor& on) {
  return with_context(
      [&] {
        return "evaluate into a new " + std::string(name(type)) + " tensor of shape " +
               to_string(shape);
      },
      [&] { return tensor::empty(shape, type, &on.pool()); });
}

void evaluate(std::vector<wanted_output> outputs, executor& on) {
  check_isa();
  pass_sequence work(std::move(outputs));
  work.for_each_pass(
      [&](const dims& shape, dtype type) { return allocate_result(shape, type, on); },
      [&](const stage&, const tensor& a, const tensor& b) { return matmul(a, b); },
      [&](const indexed_leaf& leaf, const std::vector<tensor>& indices, const tensor& into) {
        read_indexed_tiles(leaf, indices, into, on);
      },
      [&](const planned_pass& planned, const staged_values& staged) {
        run(compile(planned, staged, on), on);
      });
}

// Evaluates the value if it is small, and returns whether it was. It is never inlined, because its
// memory on the stack would then stay in use while loads of tile sources evaluate their operands.
[[gnu::noinline]] bool evaluated_as_small(const tensor& out, const node_ref& value, executor& on) {
  small_evaluation small(out, value, on);
  if (small.applies()) small.run();
  return small.applies();
}

// Evaluates a value that has the output's shape.
void evaluate(const tensor& out, const node_ref& value, executor& on) {
  check_isa();
  if (evaluated_as_small(out, value, on)) return;
  std::vector<wanted_output> outputs;
  outputs.push_back({value, out, nullptr});
  evaluate(std::move(outputs), on);
}

// Broadcasts a value to the shape of the output that it is written into.
node_ref fitted(const expr& value, const dims& shape) {
  if (value.shape() == shape) return node_of(value);
  return node_of(value.broadcast_to(shape));
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit < 6; ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

}  // namespace

tensor eval(const expr& value) {
  return allocating([&] {
    executor& on = executor::current();
    tensor result = allocate_result(value.shape(), value.dtype(), on);
    evaluate(result, node_of(value), on);
    return result;
  });
}

std::vector<tensor> eval_all(std::span<const expr> values) {
  return allocating([&] {
    executor& on = executor::current();
    std::vector<tensor> results;
    std::vector<wanted_output> outputs;
    for (const auto& value : values) {
      results.push_back(allocate_result(value.shape(), value.dtype(), on));
      outputs.push_back({node_of(value), results.back(), nullptr});
    }
    evaluate(std::move(outputs), on);
    return results;
  });
}

void eval_into(const tensor& out, const expr& value) {
  allocating([&] {
    executor& on = executor::current();
    if (value.shape() == out.shape()) evaluate(out, node_of(value), on);
    else evaluate(out, node_of(value.broadcast_to(out.shape())), on);
  });
}

void eval_into(tile_source& out, const expr& value) {
  allocating([&] {
    parallel::check_source(out);
    if (!out.writable()) throw error(errc::access_denied, "the tile source is read-only");
    executor& on = executor::current();
    node_ref fitting = fitted(value, out.shape());
    // A pass would replace tiles that it still has to read.
    if (reads_elsewhere(fitting, out.identity(), parallel::axis_map::identity(out.shape()))) {
      const tensor result = allocate_result(out.shape(), out.dtype(), on);
      eval_into(result, value);
      fitting = node_of(expr(result));
    }
    std::vector<wanted_output> outputs;
    outputs.push_back({std::move(fitting), tensor(), &out});
    evaluate(std::move(outputs), on);
  });
}

namespace {

// Makes the tensor that stands for an intermediate result in a plan. It has the result's layout and
// a range of addresses of its own, so that plans compare it with others as they would the result.
// The addresses have no memory: plans neither read nor write elements.
tensor make_placeholder(const dims& shape, dtype type) {
  const layout all(shape);
  const auto bytes = checked_mul(all.size(), static_cast<index_t>(item_bytes(type)));
  if (!bytes)
    throw error(
        errc::invalid_argument, "a result has too many bytes",
        {fmt::format("shape {} of {} is beyond 2^63 - 1 bytes", to_string(shape), name(type)),
         "reduce or slice it first"});
  const auto used = static_cast<std::size_t>(*bytes);
  const std::size_t page = detail::system_page_bytes();
  const auto range = std::make_shared<detail::address_reservation>(
      detail::align_up(std::max<std::size_t>(used, 1), page), page, 0);
  return tensor(storage::adopt_owner(range->address(), used, range), type, all);
}

// Makes the tensor that stands for the output of a plan. Plans do not read it, but its layout
// matters: it decides whether mapped operands are copied. An output may be larger than the address
// space. Its tensor is then one element that is repeated, so such a plan may say less about copies.
tensor make_output_placeholder(const dims& shape, dtype type) {
  constexpr std::uint64_t reserved_bytes_max = std::uint64_t{1} << 38;
  if (ops::bytes_of(shape, type) <= reserved_bytes_max) return make_placeholder(shape, type);
  return tensor(storage::allocate(16), type, layout(shape, dims::filled(shape.size(), 0), 0));
}

// Says how a pass reads mapped operands that exceed half of the budget.
const char* files_text(const pass_cost& costs) {
  if (costs.copies && costs.streams) return ", copied part by part, and streamed in windows";
  if (costs.copies) return ", copied part by part";
  return costs.streams ? ", streamed in windows" : "";
}

void add_pass(evaluation_plan& plan, const planned_pass& planned, const pass_cost& costs) {
  ++plan.passes;
  detail::add_saturating(plan.bytes_read, costs.bytes_read);
  detail::add_saturating(plan.bytes_written, costs.bytes_written);
  detail::add_saturating(plan.tiles_decoded, costs.tiles_decoded);
  plan.scratch_bytes_per_thread =
      std::max(plan.scratch_bytes_per_thread, costs.scratch_bytes_per_thread);
  plan.instructions += costs.instructions;
  plan.streams = plan.streams || costs.streams;
  plan.copies = plan.copies || costs.copies;
  plan.text += fmt::format(
      "pass {}: {} over {}, {} kernels a block, reads {}{}, writes {}, scratch {} a "
      "thread{}\n",
      plan.passes,
      planned.scan ? fmt::format("scans axis {}", planned.axes[0])
      : planned.reductions.empty()
          ? std::string("computes")
          : fmt::format("folds axes {} into {} result{}", to_string(planned.axes),
                        planned.reductions.size(), planned.reductions.size() == 1 ? "" : "s"),
      to_string(planned.shape), costs.instructions, bytes_text(costs.bytes_read),
      costs.tiles_decoded > 0
          ? fmt::format(" in {} tile{}", costs.tiles_decoded, costs.tiles_decoded == 1 ? "" : "s")
          : std::string(),
      bytes_text(costs.bytes_written), bytes_text(costs.scratch_bytes_per_thread),
      files_text(costs));
}

// Adds the pass that reads elements from the tiles in which they lie. These tiles are unknown until
// the indices are read.
void add_read(evaluation_plan& plan, const indexed_leaf& leaf, const std::vector<tensor>& indices,
              const tensor& into) {
  const tile_amount most = indexed_tiles_max(leaf, indices);
  const std::uint64_t read = detail::saturating_mul(most.elements, into.item_bytes());
  ++plan.passes;
  detail::add_saturating(plan.bytes_read, read);
  detail::add_saturating(plan.tiles_decoded, most.tiles);
  detail::add_saturating(plan.bytes_written, into.size_bytes());
  plan.text +=
      fmt::format("pass {}: reads {} element{} at positions, up to {} in {} tile{}, writes {}\n",
                  plan.passes, into.size(), into.size() == 1 ? "" : "s", bytes_text(read),
                  most.tiles, most.tiles == 1 ? "" : "s", bytes_text(into.size_bytes()));
}

}  // namespace

evaluation_plan explain(const expr& value) {
  return allocating([&] {
    executor& on = executor::current();
    evaluation_plan plan;
    std::vector<wanted_output> outputs;
    outputs.push_back(
        {node_of(value), make_output_placeholder(value.shape(), value.dtype()), nullptr});
    pass_sequence work(std::move(outputs));
    const auto multiply = [&](const stage& product, const tensor& a, const tensor& b) {
      const tensor result = make_placeholder(product.shape, product.type);
      ++plan.passes;
      const std::uint64_t read = detail::saturating_add(a.size_bytes(), b.size_bytes());
      detail::add_saturating(plan.bytes_read, read);
      detail::add_saturating(plan.bytes_written, result.size_bytes());
      plan.text += fmt::format("pass {}: multiplies {} by {}, reads {}, writes {}\n", plan.passes,
                               to_string(a.shape()), to_string(b.shape()), bytes_text(read),
                               bytes_text(result.size_bytes()));
      return result;
    };
    const auto read = [&](const indexed_leaf& leaf, const std::vector<tensor>& indices,
                          const tensor& into) { add_read(plan, leaf, indices, into); };
    work.for_each_pass(make_placeholder, multiply, read,
                       [&](const planned_pass& planned, const staged_values& staged) {
                         add_pass(plan, planned, cost(compile(planned, staged, on), on));
                       });
    plan.staged_bytes_max = work.staged_bytes_max();
    if (plan.staged_bytes_max > 0)
      plan.text += fmt::format(
          "intermediate results: {} at once{}\n", bytes_text(plan.staged_bytes_max),
          plan.staged_bytes_max <= on.memory_bytes()
              ? ""
              : fmt::format(", outside the budget of {}", bytes_text(on.memory_bytes())));
    return plan;
  });
}

}  // namespace shale
