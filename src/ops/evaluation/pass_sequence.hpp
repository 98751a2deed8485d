// Groups the stages and outputs of expressions into as few passes over memory as possible.
//
// A staged node must be computed before the passes that read it. So stages are sorted into levels:
// a stage's level is higher than those of all stages that it reads. The levels run one after the
// other. Within a level, stages over one shape that fold the same axes share a pass, so their
// common inputs are read once. Reductions that sharing would give other bits have passes of their
// own. The outputs come last, with one pass for each shape, or several if one pass has no room for
// all operands. The result of a stage is freed when the last pass that reads it has ended. A scan
// has a pass of its own; if its result is an output that nothing else reads, it writes that output
// itself.
//
// Other stages have results of their own even if only an output reads them. So eval(sum(x)) takes
// two passes: the first one folds, and the second one copies the number into the output. A small
// expression does without the second one (small_evaluation.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/saturating.hpp"
#include "core/widened.hpp"
#include "ops/evaluation/compile.hpp"
#include "ops/evaluation/growing_passes.hpp"
#include "ops/evaluation/stage_order.hpp"
#include "ops/linalg/products.hpp"

namespace shale::ops {

inline std::uint64_t bytes_of(const dims& shape, dtype type) {
  return detail::saturating_mul(static_cast<std::uint64_t>(element_count(shape)), item_bytes(type));
}

/// The shape of a reduction's result in which the folded axes have length 1.
inline dims with_folded_axes(const detail::stage& reduction) {
  dims shape = reduction.input->shape;
  for (const index_t axis : reduction.axes) shape[axis] = 1;
  return shape;
}

/// The bytes of a product's result before it is rounded to a narrower dtype; 0 if it is not
/// rounded.
inline std::uint64_t wider_bytes(const detail::stage& product) {
  const dtype wide = detail::widened(product.type);
  return wide == product.type ? 0 : bytes_of(product.shape, wide);
}

/// Holds the results of stages. A result is freed when its last reader has ended.
class stage_results {
 public:
  /// Announces one reader of the results of `stages`.
  void expect_reader(const std::set<const detail::stage*>& stages) {
    for (const detail::stage* result : stages) ++readers_[result];
  }

  /// `meanwhile` is the number of other bytes that existed while the result was computed.
  void add(const detail::stage& computed, const tensor& result, std::uint64_t meanwhile = 0) {
    values_[&computed] = result;
    bytes_ += bytes_of(computed.shape, computed.type);
    bytes_max_ = std::max(bytes_max_, bytes_ + meanwhile);
  }

  /// Frees the results of `stages` that have no other reader left.
  void end_reader(const std::set<const detail::stage*>& stages) {
    for (const detail::stage* result : stages) {
      if (--readers_[result] > 0) continue;
      values_.erase(result);
      bytes_ -= bytes_of(result->shape, result->type);
    }
  }

  /// The readers of a result that have not ended.
  int readers(const detail::stage* result) const {
    const auto found = readers_.find(result);
    return found == readers_.end() ? 0 : found->second;
  }

  const staged_values& values() const { return values_; }
  std::uint64_t bytes_max() const { return bytes_max_; }

 private:
  staged_values values_;
  std::map<const detail::stage*, int> readers_;  // that have not ended
  std::uint64_t bytes_ = 0;
  std::uint64_t bytes_max_ = 0;
};

/// Makes the passes of an evaluation, in order, and calls `body(pass, staged)` for each.
class pass_sequence {
 public:
  explicit pass_sequence(std::vector<wanted_output> outputs) : outputs_(std::move(outputs)) {}

  /// `allocate` makes the tensor of a stage's result: with memory, or a placeholder. `multiply`
  /// computes the product of two tensors for a stage.
  template <class Allocate, class Multiply, class Body>
  void for_each_pass(Allocate allocate, Multiply multiply, Body body) {
    for (const auto& output : outputs_) order_.add(output.value);
    const stage_levels levels = order_.levels();
    if (!levels.empty()) {
      for (const auto& output : outputs_) results_.expect_reader(order_.stages_read(output.value));
      for (const auto& level : levels)
        for (const auto& reader : level) results_.expect_reader(order_.stages_read(*reader));
      find_direct_outputs();
    }
    for (const auto& level : levels) run_level(level, allocate, multiply, body);
    growing_passes passes(results_.values());
    for (auto& output : outputs_)
      passes.pass_for(output.value).made.outputs.push_back(std::move(output));
    outputs_.clear();
    for (const auto& pass : passes.all()) {
      body(pass.made, results_.values());
      if (levels.empty()) continue;
      for (const auto& output : pass.made.outputs)
        results_.end_reader(order_.stages_read(output.value));
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
    growing_passes passes(results_.values());
    for (const auto& current : level) {
      if (current->factor) run_product(*current, multiply);
      else if (current->scans) run_scan(*current, allocate, body);
      else add_to_pass(passes.pass_for(*current), *current, allocate);
    }
    for (const auto& pass : passes.all()) {
      body(pass.made, results_.values());
      for (const detail::stage* computed : pass.stages)
        results_.end_reader(order_.stages_read(*computed));
    }
  }

  template <class Multiply>
  void run_product(const detail::stage& product, Multiply multiply) {
    const staged_values& staged = results_.values();
    results_.add(
        product,
        multiply(product, tensor_of(*product.input, staged), tensor_of(*product.factor, staged)),
        wider_bytes(product));
    results_.end_reader(order_.stages_read(product));
  }

  template <class Allocate, class Body>
  void run_scan(const detail::stage& scan, Allocate allocate, Body body) {
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
    results_.end_reader(order_.stages_read(scan));
  }

  // Whether computing `value` reads tiles of the sink, which a pass would replace meanwhile.
  static bool reads(const node_ref& value, const tile_source* sink) {
    const auto nodes = post_order(value);
    return std::any_of(nodes.begin(), nodes.end(), [&](const node_ref& input) {
      const auto* leaf = std::get_if<detail::source_leaf>(&input->content);
      return leaf && leaf->source->identity() == sink->identity();
    });
  }

  // Takes the outputs that are the whole result of a scan which nothing else reads: the scan writes
  // them itself.
  void find_direct_outputs() {
    std::vector<wanted_output> rest;
    for (auto& output : outputs_) {
      const auto* staged = std::get_if<detail::staged_leaf>(&output.value->content);
      const bool whole = staged && staged->from->scans && !staged->map && !staged->under;
      const dtype type = output.sink ? output.sink->dtype() : output.into.dtype();
      if (whole && type == staged->from->type && results_.readers(staged->from.get()) == 1 &&
          !(output.sink && reads(staged->from->input, output.sink)))
        direct_.emplace(staged->from.get(), std::move(output));
      else rest.push_back(std::move(output));
    }
    outputs_ = std::move(rest);
  }

  template <class Allocate>
  void add_to_pass(growing_pass& into, const detail::stage& current, Allocate allocate) {
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
  std::map<const detail::stage*, wanted_output> direct_;  // outputs that are written by a stage
  stage_order order_;
  stage_results results_;
};

}  // namespace shale::ops
