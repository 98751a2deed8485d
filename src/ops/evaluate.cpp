// From expressions to passes: staged nodes by level, equal shapes together, then the outputs.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "ops/dispatch.hpp"
#include "ops/pass.hpp"
#include "ops/products.hpp"
#include "parallel/executor_state.hpp"
#include "parallel/plan.hpp"
#include "shale/error.hpp"
#include "shale/evaluate.hpp"
#include "shale/expr.hpp"
#include "shale/linalg.hpp"

namespace shale {

namespace {

using namespace ops;
using namespace detail;

// The stages whose results computing `value` reads.
std::set<const stage*> stages_read(const node_ref& value) {
  std::set<const stage*> result;
  const auto add = [&](const node& which) {
    if (const auto* staged = std::get_if<staged_leaf>(&which.what))
      result.insert(staged->from.get());
  };
  for (const auto& each : post_order(value)) {
    add(*each);
    for (const auto& input : generator_inputs(*each)) add(*input);
  }
  return result;
}

std::set<const stage*> stages_read(const stage& which) {
  std::set<const stage*> result = stages_read(which.input);
  if (which.factor) result.merge(stages_read(which.factor));
  return result;
}

using stage_levels = std::vector<std::vector<std::shared_ptr<const stage>>>;

// Stages by level: those of a level read results of lower ones only.
class stage_order {
 public:
  void add(const node_ref& from) {
    for (const auto& each : post_order(from, walk::through_stages)) level_of_node(*each);
  }

  /// Folds as early as they can be, so that those over one input share a pass; what is not folded
  /// as late, so that it is held for a short time. In a level, what could not run earlier comes first:
  /// products let go of their operands before those of the next level get memory.
  stage_levels levels() const {
    std::map<const stage*, std::size_t> read_in;  // the first level that reads each
    stage_levels late(levels_.size());
    for (std::size_t level = levels_.size(); level-- > 0;) {
      for (const auto& which : levels_[level]) {
        const auto reader = read_in.find(which.get());
        const std::size_t latest = (reader == read_in.end() ? levels_.size() : reader->second) - 1;
        const std::size_t chosen = which->reduces ? level : latest;
        late[chosen].push_back(which);
        for (const stage* each : stages_read(*which)) {
          const auto [known, fresh] = read_in.emplace(each, chosen);
          if (!fresh) known->second = std::min(known->second, chosen);
        }
      }
    }
    return late;
  }

 private:
  // Levels that must be done before the node can be read. What it reads is known already.
  int level_of_node(const node& which) {
    if (const auto known = nodes_.find(&which); known != nodes_.end()) return known->second;
    int level = 0;
    if (const auto* staged = std::get_if<staged_leaf>(&which.what)) {
      level = level_of_stage(staged->from);
    } else {
      for (const auto& input : inputs_of(which, walk::through_stages))
        level = std::max(level, level_of_node(*input));
    }
    nodes_.emplace(&which, level);
    return level;
  }

  int level_of_stage(const std::shared_ptr<const stage>& which) {
    if (const auto known = stages_.find(which.get()); known != stages_.end()) return known->second;
    const int before =
        std::max(level_of_node(*which->input), which->factor ? level_of_node(*which->factor) : 0);
    if (static_cast<std::size_t>(before) == levels_.size()) levels_.emplace_back();
    levels_[static_cast<std::size_t>(before)].push_back(which);
    stages_.emplace(which.get(), before + 1);
    return before + 1;
  }

  std::map<const node*, int> nodes_;
  std::map<const stage*, int> stages_;
  stage_levels levels_;  // each stage as early as it can be
};

std::uint64_t bytes_of(const dims& shape, dtype type) {
  return static_cast<std::uint64_t>(element_count(shape)) * item_bytes(type);
}

// Of the result of a product before it is narrowed, if it is.
std::uint64_t wider_bytes(const stage& product) {
  const dtype wide = multiplied_as(product.type);
  return wide == product.type ? 0 : bytes_of(product.shape, wide);
}

// The results of stages, each kept until all that read it are computed.
class stage_results {
 public:
  void expect_reader(const std::set<const stage*>& of) {
    for (const stage* each : of) ++unread_[each];
  }

  /// `meanwhile`: bytes beside it while it was computed.
  void add(const stage& which, const tensor& result, std::uint64_t meanwhile = 0) {
    values_[&which] = result;
    bytes_ += bytes_of(which.shape, which.type);
    bytes_max_ = std::max(bytes_max_, bytes_ + meanwhile);
  }

  void end_reader(const std::set<const stage*>& of) {
    for (const stage* each : of) {
      if (--unread_[each] > 0) continue;
      values_.erase(each);
      bytes_ -= bytes_of(each->shape, each->type);
    }
  }

  const staged_values& values() const { return values_; }
  std::uint64_t bytes_max() const { return bytes_max_; }

 private:
  staged_values values_;
  std::map<const stage*, int> unread_;
  std::uint64_t bytes_ = 0;
  std::uint64_t bytes_max_ = 0;
};

// A pass that is being put together, what it reads so far, and the stages it computes.
struct growing_pass {
  pass made;
  std::set<const node*> leaves = {};
  std::vector<const stage*> stages = {};

  // Whether outputs, leaves and states still fit one plan; if so, counts the leaves of `value`. A
  // pass takes its first value in any case.
  bool takes(const node_ref& value) {
    std::set<const node*> together = leaves;
    for (const auto& each : post_order(value))
      if (!computes_elements(*each) && !std::holds_alternative<constant_leaf>(each->what))
        together.insert(each.get());
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
  explicit evaluation(std::vector<pass_output> outputs) : outputs_(std::move(outputs)) {}

  /// `allocate` gives a stage's result its memory: real, or none for a plan. `multiply` makes the
  /// product of two tensors, of the given stage.
  template <class Allocate, class Multiply, class Body>
  void for_each_pass(Allocate allocate, Multiply multiply, Body body) {
    stage_order order;
    for (const auto& output : outputs_) {
      order.add(output.value);
      results_.expect_reader(stages_read(output.value));
    }
    const stage_levels levels = order.levels();
    for (const auto& level : levels)
      for (const auto& which : level) results_.expect_reader(stages_read(*which));
    for (const auto& level : levels) run_level(level, allocate, multiply, body);
    while (!outputs_.empty()) {
      growing_pass next{pass{outputs_.front().value->shape, {}, {}, {}}};
      std::vector<pass_output> rest;
      for (auto& output : outputs_) {
        const bool joins = output.value->shape == next.made.shape && next.takes(output.value);
        (joins ? next.made.outputs : rest).push_back(std::move(output));
      }
      outputs_ = std::move(rest);
      body(next.made, results_.values());
      for (const auto& output : next.made.outputs) results_.end_reader(stages_read(output.value));
    }
  }

  /// The most bytes of results of stages at once.
  std::uint64_t staged_bytes_max() const { return results_.bytes_max(); }

 private:
  template <class Allocate, class Multiply, class Body>
  void run_level(const stage_levels::value_type& level, Allocate allocate, Multiply multiply,
                 Body body) {
    std::vector<growing_pass> passes;
    for (const auto& which : level) {
      if (which->factor) {
        const staged_values& staged = results_.values();
        results_.add(
            *which,
            multiply(*which, tensor_of(*which->input, staged), tensor_of(*which->factor, staged)),
            wider_bytes(*which));
        results_.end_reader(stages_read(*which));
        continue;
      }
      const dims& shape = which->input->shape;
      const auto same = std::find_if(passes.begin(), passes.end(), [&](growing_pass& other) {
        return other.made.shape == shape && other.made.axes == which->axes &&
               other.made.reductions.empty() != which->reduces && other.takes(which->input);
      });
      const bool fresh = same == passes.end();
      if (fresh) {
        passes.push_back({pass{shape, {}, {}, which->axes}});
        passes.back().takes(which->input);
      }
      growing_pass& into = fresh ? passes.back() : *same;
      into.stages.push_back(which.get());
      if (which->reduces) {
        const tensor result = allocate(which->shape, which->type);
        into.made.reductions.push_back({which->input, which->which, which->parameter, result});
        results_.add(*which, result);
      } else {
        const tensor result = allocate(shape, which->type);
        into.made.outputs.push_back({which->input, result, nullptr});
        results_.add(*which, result.view(which->shape));
      }
    }
    for (const auto& each : passes) {
      body(each.made, results_.values());
      for (const stage* computed : each.stages) results_.end_reader(stages_read(*computed));
    }
  }

  std::vector<pass_output> outputs_;
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

void evaluate(std::vector<pass_output> outputs, executor& on) {
  check_isa();
  evaluation work(std::move(outputs));
  work.for_each_pass(
      [&](const dims& shape, dtype type) { return allocate_result(shape, type, on); },
      [&](const stage&, const tensor& a, const tensor& b) { return matmul(a, b, &on); },
      [&](const pass& which, const staged_values& staged) { run(which, staged, on); });
}

// A value seen in the shape of what it is written into.
node_ref fitted(const expr& value, const dims& shape) {
  if (value.shape() == shape) return value.node();
  return value.expand(shape).node();
}

// Whether computing `value` reads `source` anywhere but at the very element being written: then
// tiles would be replaced that are still to be read. Stages are no matter: they come before.
bool reads_elsewhere(const node_ref& value, const tile_source& source) {
  const axis_map same = axis_map::identity(source.shape());
  const auto nodes = post_order(value);
  return std::any_of(nodes.begin(), nodes.end(), [&](const node_ref& each) {
    const auto* leaf = std::get_if<source_leaf>(&each->what);
    return leaf && leaf->source.get() == &source &&
           !(leaf->map.shape == same.shape && leaf->map.base == same.base &&
             leaf->map.from == same.from && leaf->map.step == same.step);
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

tensor eval(const expr& value, executor* on) {
  return eval_all(std::span<const expr>(&value, 1), on).front();
}

std::vector<tensor> eval_all(std::span<const expr> values, executor* on) {
  executor& chosen = parallel::choose(on);
  std::vector<tensor> results;
  std::vector<pass_output> outputs;
  for (const auto& value : values) {
    results.push_back(allocate_result(value.shape(), value.dtype(), chosen));
    outputs.push_back({value.node(), results.back(), nullptr});
  }
  evaluate(std::move(outputs), chosen);
  return results;
}

void eval_into(const tensor& out, const expr& value, executor* on) {
  std::vector<pass_output> outputs;
  outputs.push_back({fitted(value, out.shape()), out, nullptr});
  evaluate(std::move(outputs), parallel::choose(on));
}

void eval_into(tile_source& out, const expr& value, executor* on) {
  if (!out.writable()) throw error(errc::access_denied, "the tile source is read-only");
  executor& chosen = parallel::choose(on);
  node_ref fitting = fitted(value, out.shape());
  if (reads_elsewhere(fitting, out)) {
    const tensor result = allocate_result(out.shape(), out.dtype(), chosen);
    eval_into(result, value, &chosen);
    fitting = expr(result).node();
  }
  std::vector<pass_output> outputs;
  outputs.push_back({std::move(fitting), tensor(), &out});
  evaluate(std::move(outputs), chosen);
}

evaluation_plan explain(const expr& value, executor* on) {
  executor& chosen = parallel::choose(on);
  evaluation_plan plan;
  // Tensors that have the shape and no elements behind it: every index names the same bytes. Each
  // has bytes of its own, or the tape would take two results for one.
  const auto stand_in = [](const dims& shape, dtype type) {
    return tensor(storage::allocate(16), type, layout(shape, dims::filled(shape.size(), 0), 0));
  };
  std::vector<pass_output> outputs;
  outputs.push_back({value.node(), stand_in(value.shape(), value.dtype()), nullptr});
  evaluation work(std::move(outputs));
  const auto multiply = [&](const stage& which, const tensor& a, const tensor& b) {
    const tensor result = stand_in(which.shape, which.type);
    ++plan.passes;
    plan.bytes_read += a.size_bytes() + b.size_bytes();
    plan.bytes_written += result.size_bytes();
    plan.text +=
        fmt::format("pass {}: multiplies {} by {}, reads {}, writes {}\n", plan.passes,
                    to_string(a.shape()), to_string(b.shape()),
                    bytes_text(a.size_bytes() + b.size_bytes()), bytes_text(result.size_bytes()));
    return result;
  };
  work.for_each_pass(stand_in, multiply, [&](const pass& which, const staged_values& staged) {
    const pass_cost costs = cost(which, staged, chosen);
    ++plan.passes;
    plan.bytes_read += costs.bytes_read;
    plan.bytes_written += costs.bytes_written;
    plan.tiles_decoded += costs.tiles_decoded;
    plan.scratch_bytes_per_thread =
        std::max(plan.scratch_bytes_per_thread, costs.scratch_bytes_per_thread);
    plan.instructions += costs.instructions;
    plan.streams = plan.streams || costs.streams;
    plan.text += fmt::format(
        "pass {}: {} over {}, {} kernels a block, reads {}{}, writes {}, scratch {} a thread{}\n",
        plan.passes,
        which.reductions.empty()
            ? std::string("computes")
            : fmt::format("folds axes {} into {} result{}", to_string(which.axes),
                          which.reductions.size(), which.reductions.size() == 1 ? "" : "s"),
        to_string(which.shape), costs.instructions, bytes_text(costs.bytes_read),
        costs.tiles_decoded > 0
            ? fmt::format(" in {} tile{}", costs.tiles_decoded, costs.tiles_decoded == 1 ? "" : "s")
            : std::string(),
        bytes_text(costs.bytes_written), bytes_text(costs.scratch_bytes_per_thread),
        costs.streams ? ", streamed in windows" : "");
  });
  plan.staged_bytes_max = work.staged_bytes_max();
  if (plan.staged_bytes_max > 0)
    plan.text += fmt::format(
        "intermediate results: {} at once{}\n", bytes_text(plan.staged_bytes_max),
        plan.staged_bytes_max <= chosen.memory_bytes()
            ? ""
            : fmt::format(", outside the budget of {}", bytes_text(chosen.memory_bytes())));
  return plan;
}

}  // namespace shale
