// Evaluates expressions in as few passes over memory as possible.
//
// A staged node must be computed before the passes that read it. So stages are sorted into levels:
// a stage's level is higher than those of all stages that it reads. The levels run one after the
// other. Within a level, stages over one shape that fold the same axes share a pass, so their
// common inputs are read once. The outputs come last, again one pass for each shape. The result of
// a stage is freed when the last pass that reads it has ended. A scan has a pass of its own; if its
// result is an output that nothing else reads, it writes that output itself.
//
// Other stages have results of their own even if only an output reads them. So eval(sum(x)) takes two
// passes: the first one folds, and the second one copies the number into the output. A small
// expression does without the second one (small_evaluation.hpp).
//
// `explain` goes through the same steps, with placeholders that have no elements, and adds up the
// costs of the passes.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "core/allocating.hpp"
#include "ops/graph/compile.hpp"
#include "ops/graph/node_access.hpp"
#include "ops/graph/small_evaluation.hpp"
#include "ops/kernels/dispatch.hpp"
#include "ops/linalg/products.hpp"
#include "parallel/executor/executor_state.hpp"
#include "parallel/plan/plan.hpp"
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

// The stages whose results a pass reads when it computes `value`.
std::set<const stage*> stages_read(const node_ref& value) {
  std::set<const stage*> result;
  const auto add = [&](const node& leaf) {
    if (const auto* staged = std::get_if<staged_leaf>(&leaf.content))
      result.insert(staged->from.get());
  };
  for (const auto& node : post_order(value)) {
    add(*node);
    for (const auto& input : generator_inputs(*node)) add(*input);
  }
  return result;
}

std::set<const stage*> stages_read(const stage& reader) {
  std::set<const stage*> result = stages_read(reader.input);
  if (reader.factor) result.merge(stages_read(reader.factor));
  return result;
}

using stage_levels = std::vector<std::vector<std::shared_ptr<const stage>>>;

// Sorts stages into levels. A stage reads results of lower levels only.
class stage_order {
 public:
  void add(const node_ref& root) {
    for (const auto& value : post_order(root, walk::through_stages)) level_of_node(*value);
  }

  /// Returns the levels. A reduction runs as early as possible, so that reductions over one input
  /// share a pass; its result is small. Another stage runs as late as possible, in the level before
  /// its first reader, so that its result is held for a short time. Within a level, stages that
  /// could not run earlier come first: so products free their operands before later stages allocate
  /// results.
  stage_levels levels() const {
    std::map<const stage*, std::size_t> read_in;  // the first level that reads a stage's result
    stage_levels late(levels_.size());
    for (std::size_t level = levels_.size(); level-- > 0;) {
      for (const auto& current : levels_[level]) {
        const auto reader = read_in.find(current.get());
        const std::size_t latest = (reader == read_in.end() ? levels_.size() : reader->second) - 1;
        const std::size_t chosen = current->reduces ? level : latest;
        late[chosen].push_back(current);
        for (const stage* input : stages_read(*current)) {
          const auto [known, is_new] = read_in.emplace(input, chosen);
          if (!is_new) known->second = std::min(known->second, chosen);
        }
      }
    }
    return late;
  }

 private:
  // The number of levels that must have run before the node can be read. The levels of its inputs
  // are known already, so this does not recurse deeply.
  int level_of_node(const node& value) {
    if (const auto known = nodes_.find(&value); known != nodes_.end()) return known->second;
    int level = 0;
    if (const auto* staged = std::get_if<staged_leaf>(&value.content)) {
      level = level_of_stage(staged->from);
    } else {
      for (const auto& input : inputs_of(value, walk::through_stages))
        level = std::max(level, level_of_node(*input));
    }
    nodes_.emplace(&value, level);
    return level;
  }

  int level_of_stage(const std::shared_ptr<const stage>& current) {
    if (const auto known = stages_.find(current.get()); known != stages_.end())
      return known->second;
    const int before = std::max(level_of_node(*current->input),
                                current->factor ? level_of_node(*current->factor) : 0);
    if (static_cast<std::size_t>(before) == levels_.size()) levels_.emplace_back();
    levels_[static_cast<std::size_t>(before)].push_back(current);
    stages_.emplace(current.get(), before + 1);
    return before + 1;
  }

  std::map<const node*, int> nodes_;
  std::map<const stage*, int> stages_;
  stage_levels levels_;  // every stage in its earliest level
};

std::uint64_t bytes_of(const dims& shape, dtype type) {
  return static_cast<std::uint64_t>(element_count(shape)) * item_bytes(type);
}

// The shape of a reduction's result in which the folded axes have length 1.
dims with_folded_axes(const stage& reduction) {
  dims shape = reduction.input->shape;
  for (const index_t axis : reduction.axes) shape[axis] = 1;
  return shape;
}

// The bytes of a product's result before it is rounded to a narrower dtype; 0 if it is not rounded.
std::uint64_t wider_bytes(const stage& product) {
  const dtype wide = multiplied_as(product.type);
  return wide == product.type ? 0 : bytes_of(product.shape, wide);
}

// Holds the results of stages. A result is freed when its last reader has ended.
class stage_results {
 public:
  /// Announces one reader of the results of `read`.
  void expect_reader(const std::set<const stage*>& read) {
    for (const stage* result : read) ++readers_[result];
  }

  /// `meanwhile` is the number of other bytes that existed while the result was computed.
  void add(const stage& computed, const tensor& result, std::uint64_t meanwhile = 0) {
    values_[&computed] = result;
    bytes_ += bytes_of(computed.shape, computed.type);
    bytes_max_ = std::max(bytes_max_, bytes_ + meanwhile);
  }

  /// Frees the results of `read` that have no other reader left.
  void end_reader(const std::set<const stage*>& read) {
    for (const stage* result : read) {
      if (--readers_[result] > 0) continue;
      values_.erase(result);
      bytes_ -= bytes_of(result->shape, result->type);
    }
  }

  /// The readers of a result that have not ended.
  int readers(const stage* result) const {
    const auto found = readers_.find(result);
    return found == readers_.end() ? 0 : found->second;
  }

  const staged_values& values() const { return values_; }
  std::uint64_t bytes_max() const { return bytes_max_; }

 private:
  staged_values values_;
  std::map<const stage*, int> readers_;  // that have not ended
  std::uint64_t bytes_ = 0;
  std::uint64_t bytes_max_ = 0;
};

// A pass that is being put together, the leaves that it reads so far, and the stages that it
// computes.
struct growing_pass {
  planned_pass made;
  std::set<const node*> leaves = {};
  std::vector<const stage*> stages = {};

  bool reduces() const { return !made.reductions.empty(); }

  // Whether a stage may join. Reading positions changes the order in which a pass folds. That would
  // change the bits of float sums, which must not depend on what else is computed.
  bool can_fold(const stage& added) const {
    if (!added.reduces) return true;
    bool positions = find_reducer(added.kind, added.input->type)->reads_positions;
    bool ordered = depends_on_order(added.kind);
    for (const auto& known : made.reductions) {
      positions = positions || find_reducer(known.kind, known.value->type)->reads_positions;
      ordered = ordered || depends_on_order(known.kind);
    }
    return !(positions && ordered);
  }

  // Adds the leaves of `value` if outputs, leaves and states together fit in one plan. Returns true
  // if they fit. An empty pass takes any value.
  bool try_take(const node_ref& value) {
    std::set<const node*> together = leaves;
    for (const auto& node : post_order(value))
      if (!computes_elements(*node) && !std::holds_alternative<constant_leaf>(node->content))
        together.insert(node.get());
    const std::size_t values = made.outputs.size() + made.reductions.size();
    if (values > 0 &&
        together.size() + values + 2 > static_cast<std::size_t>(parallel::max_operands))
      return false;
    leaves = std::move(together);
    return true;
  }
};

// Makes the passes of an evaluation, in order, and calls `body(pass, staged)` for each.
class evaluation {
 public:
  explicit evaluation(std::vector<wanted_output> outputs) : outputs_(std::move(outputs)) {}

  /// `allocate` makes the tensor of a stage's result: with memory, or a placeholder. `multiply`
  /// computes the product of two tensors for a stage.
  template <class Allocate, class Multiply, class Body>
  void for_each_pass(Allocate allocate, Multiply multiply, Body body) {
    stage_order order;
    for (const auto& output : outputs_) {
      order.add(output.value);
      results_.expect_reader(stages_read(output.value));
    }
    const stage_levels levels = order.levels();
    for (const auto& level : levels)
      for (const auto& reader : level) results_.expect_reader(stages_read(*reader));
    find_direct_outputs();
    for (const auto& level : levels) run_level(level, allocate, multiply, body);
    while (!outputs_.empty()) {
      growing_pass next{planned_pass{outputs_.front().value->shape, {}, {}, {}}};
      std::vector<wanted_output> rest;
      for (auto& output : outputs_) {
        const bool joins = output.value->shape == next.made.shape && next.try_take(output.value);
        (joins ? next.made.outputs : rest).push_back(std::move(output));
      }
      outputs_ = std::move(rest);
      body(next.made, results_.values());
      for (const auto& output : next.made.outputs) results_.end_reader(stages_read(output.value));
    }
  }

  /// The largest sum of bytes of results that existed at once.
  std::uint64_t staged_bytes_max() const { return results_.bytes_max(); }

 private:
  // Runs the stages of one level. They do not read each other's results. Products and scans run at
  // once, because they share no pass: so they free their operands before the stages after them
  // allocate their results. The others join passes, which run when all of them are known.
  template <class Allocate, class Multiply, class Body>
  void run_level(const stage_levels::value_type& level, Allocate allocate, Multiply multiply,
                 Body body) {
    std::vector<growing_pass> passes;
    for (const auto& current : level) {
      if (current->factor) run_product(*current, multiply);
      else if (current->scans) run_scan(*current, allocate, body);
      else add_to_pass(pass_for(*current, passes), *current, allocate);
    }
    for (const auto& pass : passes) {
      body(pass.made, results_.values());
      for (const stage* computed : pass.stages) results_.end_reader(stages_read(*computed));
    }
  }

  template <class Multiply>
  void run_product(const stage& product, Multiply multiply) {
    const staged_values& staged = results_.values();
    results_.add(
        product,
        multiply(product, tensor_of(*product.input, staged), tensor_of(*product.factor, staged)),
        wider_bytes(product));
    results_.end_reader(stages_read(product));
  }

  template <class Allocate, class Body>
  void run_scan(const stage& scan, Allocate allocate, Body body) {
    const auto direct = direct_.find(&scan);
    wanted_output into{scan.input, tensor(), nullptr};
    if (direct == direct_.end()) {
      into.into = allocate(scan.shape, scan.type);
    } else {
      into.into = direct->second.into;
      into.sink = direct->second.sink;
    }
    body(planned_pass{scan.shape, {}, {}, scan.axes, wanted_scan{*scan.scans, into}},
         results_.values());
    if (direct == direct_.end()) results_.add(scan, into.into);
    results_.end_reader(stages_read(scan));
  }

  // Takes the outputs that are the whole result of a scan which nothing else reads: the scan writes
  // them itself.
  void find_direct_outputs() {
    std::vector<wanted_output> rest;
    for (auto& output : outputs_) {
      const auto* staged = std::get_if<staged_leaf>(&output.value->content);
      const bool whole = staged && staged->from->scans && !staged->map && !staged->under;
      const dtype type = output.sink ? output.sink->dtype() : output.into.dtype();
      if (whole && type == staged->from->type && results_.readers(staged->from.get()) == 1)
        direct_.emplace(staged->from.get(), std::move(output));
      else rest.push_back(std::move(output));
    }
    outputs_ = std::move(rest);
  }

  // Returns the pass that computes a stage, with the leaves that the stage reads: the first of
  // `passes` over the same shape that folds the same axes (or none, as the stage) and has room, or
  // a new one.
  static growing_pass& pass_for(const stage& current, std::vector<growing_pass>& passes) {
    const dims& shape = current.input->shape;
    for (growing_pass& known : passes)
      if (known.made.shape == shape && known.made.axes == current.axes &&
          known.reduces() == current.reduces && known.can_fold(current) &&
          known.try_take(current.input))
        return known;
    passes.push_back({planned_pass{shape, {}, {}, current.axes}});
    passes.back().try_take(current.input);
    return passes.back();
  }

  template <class Allocate>
  void add_to_pass(growing_pass& into, const stage& current, Allocate allocate) {
    into.stages.push_back(&current);
    if (current.reduces) {
      const tensor result = allocate(current.shape, current.type);
      into.made.reductions.push_back(
          {current.input, current.kind, current.parameter, result.view(with_folded_axes(current))});
      results_.add(current, result);
    } else {
      const tensor result = allocate(current.input->shape, current.type);
      into.made.outputs.push_back({current.input, result, nullptr});
      results_.add(current, result.view(current.shape));
    }
  }

  std::vector<wanted_output> outputs_;
  std::map<const stage*, wanted_output> direct_;  // outputs that are written by a stage
  stage_results results_;
};

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
  evaluation work(std::move(outputs));
  work.for_each_pass(
      [&](const dims& shape, dtype type) { return allocate_result(shape, type, on); },
      [&](const stage&, const tensor& a, const tensor& b) { return matmul(a, b); },
      [&](const planned_pass& planned, const staged_values& staged) {
        run(compile(planned, staged, on), on);
      });
}

// Evaluates a value that has the output's shape.
void evaluate(const tensor& out, const node_ref& value, executor& on) {
  check_isa();
  if (small_evaluation small(out, value, on); small.applies()) return small.run();
  std::vector<wanted_output> outputs;
  outputs.push_back({value, out, nullptr});
  evaluate(std::move(outputs), on);
}

// Broadcasts a value to the shape of the output that it is written into.
node_ref fitted(const expr& value, const dims& shape) {
  if (value.shape() == shape) return node_of(value);
  return node_of(value.broadcast_to(shape));
}

// Whether the computation of `value` reads elements of `source` at other indices than the one being
// written. Then a pass would replace tiles that are still to be read. Stages that read the source
// do no harm, because they are computed before.
bool reads_elsewhere(const node_ref& value, const tile_source& source) {
  const axis_map same = axis_map::identity(source.shape());
  const auto nodes = post_order(value);
  return std::any_of(nodes.begin(), nodes.end(), [&](const node_ref& input) {
    const auto* leaf = std::get_if<source_leaf>(&input->content);
    return leaf && leaf->source.get() == &source && !(*leaf->map == same);
  });
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
    if (reads_elsewhere(fitting, out)) {
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
  const std::size_t page = detail::page_bytes();
  const auto range = std::make_shared<detail::address_reservation>(
      detail::align_up(std::max<std::size_t>(used, 1), page), page, 0);
  return tensor(storage::adopt_owner(range->address(), used, range), type, all);
}

// Makes the tensor that stands for the output of a plan, which nobody reads. It may be larger than
// the address space.
tensor make_output_placeholder(const dims& shape, dtype type) {
  return tensor(storage::allocate(16), type, layout(shape, dims::filled(shape.size(), 0), 0));
}

}  // namespace

evaluation_plan explain(const expr& value) {
  return allocating([&] {
    executor& on = executor::current();
    evaluation_plan plan;
    std::vector<wanted_output> outputs;
    outputs.push_back(
        {node_of(value), make_output_placeholder(value.shape(), value.dtype()), nullptr});
    evaluation work(std::move(outputs));
    const auto multiply = [&](const stage& product, const tensor& a, const tensor& b) {
      const tensor result = make_placeholder(product.shape, product.type);
      ++plan.passes;
      plan.bytes_read += a.size_bytes() + b.size_bytes();
      plan.bytes_written += result.size_bytes();
      plan.text +=
          fmt::format("pass {}: multiplies {} by {}, reads {}, writes {}\n", plan.passes,
                      to_string(a.shape()), to_string(b.shape()),
                      bytes_text(a.size_bytes() + b.size_bytes()), bytes_text(result.size_bytes()));
      return result;
    };
    work.for_each_pass(
        make_placeholder, multiply, [&](const planned_pass& planned, const staged_values& staged) {
          const pass_cost costs = cost(compile(planned, staged, on), on);
          ++plan.passes;
          plan.bytes_read += costs.bytes_read;
          plan.bytes_written += costs.bytes_written;
          plan.tiles_decoded += costs.tiles_decoded;
          plan.scratch_bytes_per_thread =
              std::max(plan.scratch_bytes_per_thread, costs.scratch_bytes_per_thread);
          plan.instructions += costs.instructions;
          plan.streams = plan.streams || costs.streams;
          plan.text += fmt::format(
              "pass {}: {} over {}, {} kernels a block, reads {}{}, writes {}, scratch {} a "
              "thread{}\n",
              plan.passes,
              planned.scan ? fmt::format("scans axis {}", planned.axes[0])
              : planned.reductions.empty()
                  ? std::string("computes")
                  : fmt::format("folds axes {} into {} result{}", to_string(planned.axes),
                                planned.reductions.size(),
                                planned.reductions.size() == 1 ? "" : "s"),
              to_string(planned.shape), costs.instructions, bytes_text(costs.bytes_read),
              costs.tiles_decoded > 0 ? fmt::format(" in {} tile{}", costs.tiles_decoded,
                                                    costs.tiles_decoded == 1 ? "" : "s")
                                      : std::string(),
              bytes_text(costs.bytes_written), bytes_text(costs.scratch_bytes_per_thread),
              costs.streams ? ", streamed in windows" : "");
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
