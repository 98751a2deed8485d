// Groups the stages and outputs of expressions into as few passes over memory as possible.
//
// A staged node must be computed before the passes that read it. So stages are sorted into levels:
// a stage's level is higher than those of all stages that it reads. The levels run one after the
// other. Within a level, stages over one shape that fold the same axes share a pass, so their
// common inputs are read once. A reduction has a pass of its own if sharing one would change its
// bits. The outputs come last, with one pass for each shape, or several if one pass has no room for
// all operands. Stages that compute one node as a whole have one result (stages.2). The result of a
// stage is freed when the last pass that reads it has ended.
//
// Some stages write an output themselves, if it is their result and nothing else reads it:
//   - a reduction, if the output is contiguous and lies in memory
//   - a scan, which has a pass of its own
//   - a rolling reduction, and sums over windows by Fourier transforms. Each has a pass of its own,
//     which copies the results from tiles; loading a tile computes it (rolling_tiles.hpp,
//     transformed_windows.hpp)
//   - elements at positions of a tile source, which are read from its tiles without any pass
//     (source_reads.hpp)
// Other stages have results of their own even if only an output reads them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/saturating.hpp"
#include "core/widened.hpp"
#include "ops/evaluation/compile.hpp"
#include "ops/evaluation/growing_passes.hpp"
#include "ops/evaluation/rolling_tiles.hpp"
#include "ops/evaluation/source_reads.hpp"
#include "ops/evaluation/stage_order.hpp"
#include "ops/evaluation/transformed_windows.hpp"
#include "ops/linalg/products.hpp"
#include "storage/blocks/backing.hpp"

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

/// Holds the results of stages until they are freed.
class stage_results {
 public:
  /// `order` must have all stages, and outlive this object.
  explicit stage_results(const stage_order& order) : order_(order) {}

  /// Adds the result of a stage and of the stages that are one with it (stages.2). `meanwhile` is
  /// the number of other bytes that existed while the result was computed.
  void add(const detail::stage& computed, const tensor& result, std::uint64_t meanwhile = 0) {
    values_[&computed] = result;
    for (const detail::stage* joined : order_.joined_with(computed))
      values_[joined] = result.view(joined->shape);
    bytes_ += bytes_of(computed.shape, computed.type);
    bytes_max_ = std::max(bytes_max_, bytes_ + meanwhile);
  }

  void release(const stage_order::stages& results) {
    for (const detail::stage* result : results) {
      values_.erase(result);
      for (const detail::stage* joined : order_.joined_with(*result)) values_.erase(joined);
      bytes_ -= bytes_of(result->shape, result->type);
    }
  }

  const staged_values& values() const { return values_; }
  std::uint64_t bytes_max() const { return bytes_max_; }

 private:
  const stage_order& order_;
  staged_values values_;
  std::uint64_t bytes_ = 0;
  std::uint64_t bytes_max_ = 0;
};

/// Makes the passes of an evaluation, in order, and calls `body(pass, staged)` for each.
class pass_sequence {
 public:
  explicit pass_sequence(std::vector<wanted_output> outputs) : outputs_(std::move(outputs)) {}

  /// `allocate` makes the tensor of a stage's result: with memory, or a placeholder. `multiply`
  /// computes the product of two tensors for a stage. `read(leaf, indices, target)` reads the
  /// elements of an indexed leaf from tiles into `target`.
  template <class Allocate, class Multiply, class Read, class Body>
  void for_each_pass(Allocate allocate, Multiply multiply, Read read, Body body) {
    for (const auto& output : outputs_) order_.add(output.value);
    const stage_levels levels = order_.levels();
    if (!levels.empty()) find_direct_outputs();
    for (std::size_t level = 0; level < levels.size(); ++level)
      run_level(levels[level], level, allocate, multiply, read, body);
    growing_passes passes(results_.values());
    for (auto& output : outputs_)
      passes.pass_for(output.value).made.outputs.push_back(std::move(output));
    outputs_.clear();
    run_passes(passes, levels.size(), body);
  }

  /// The largest sum of bytes of results that existed at once.
  std::uint64_t staged_bytes_max() const { return results_.bytes_max(); }

 private:
  // Runs the stages of one level. They do not read each other's results. Products, scans, results
  // that are tiles and reads of tiles share no pass. Each of them runs immediately, so that it
  // frees its operands before later stages allocate their results. The other stages join passes,
  // which run when all passes of the level are known. This function is never inlined, because its
  // memory on the stack would then stay in use while loads of tile sources evaluate their operands.
  template <class Allocate, class Multiply, class Read, class Body>
  [[gnu::noinline]] void run_level(const stage_levels::value_type& stages, std::size_t level,
                                   Allocate allocate, Multiply multiply, Read read, Body body) {
    growing_passes passes(results_.values());
    const auto read_last = order_.read_last(readers_of(stages), level);
    std::size_t ended = 0;
    for (const auto& current : stages) {
      if (!runs_alone(*current)) {
        add_to_pass(passes.pass_for(*current), *current, allocate);
        continue;
      }
      if (is_product(*current)) run_product(*current, multiply);
      else if (read_from_tiles(*current)) read_tiles(*current, allocate, read);
      else run_own_pass(*current, allocate, body);
      results_.release(read_last[ended++]);
    }
    run_passes(passes, level, body);
  }

  template <class Body>
  void run_passes(const growing_passes& passes, std::size_t level, Body body) {
    std::vector<stage_order::reader> readers;
    for (const auto& pass : passes.all()) readers.push_back(values_of(pass.made));
    const auto read_last = order_.read_last(readers, level);
    std::size_t ended = 0;
    for (const auto& pass : passes.all()) {
      body(pass.made, results_.values());
      results_.release(read_last[ended++]);
    }
  }

  static bool runs_alone(const detail::stage& current) {
    return is_product(current) || has_own_pass(current) || read_from_tiles(current);
  }

  static bool is_product(const detail::stage& current) { return current.factor && !current.before; }

  // Whether the results of the stage are tiles, which are computed when its pass loads them.
  static bool is_tiles(const detail::stage& current) {
    return current.width > 0 || current.before.has_value();
  }

  static bool has_own_pass(const detail::stage& current) {
    return current.scans.has_value() || is_tiles(current);
  }

  // The readers of results in a level: each stage that runs alone, then all other stages together.
  static std::vector<stage_order::reader> readers_of(const stage_levels::value_type& stages) {
    std::vector<stage_order::reader> result;
    stage_order::reader others;
    for (const auto& current : stages) {
      if (!runs_alone(*current)) others.push_back(current->input.get());
      else if (current->factor) result.push_back({current->input.get(), current->factor.get()});
      else result.push_back({current->input.get()});
    }
    result.push_back(std::move(others));
    return result;
  }

  static stage_order::reader values_of(const planned_pass& pass) {
    stage_order::reader result;
    for (const auto& output : pass.outputs) result.push_back(output.value.get());
    for (const auto& reduction : pass.reductions) result.push_back(reduction.value.get());
    return result;
  }

  template <class Multiply>
  void run_product(const detail::stage& product, Multiply multiply) {
    const staged_values& staged = results_.values();
    results_.add(
        product,
        multiply(product, tensor_of(*product.input, staged), tensor_of(*product.factor, staged)),
        wider_bytes(product));
  }

  // Runs a scan, or a stage whose results are tiles.
  template <class Allocate, class Body>
  void run_own_pass(const detail::stage& current, Allocate allocate, Body body) {
    const auto direct = direct_.find(&current);
    wanted_output output{current.input, tensor(), nullptr};
    if (direct == direct_.end()) {
      output.target = allocate(current.shape, current.type);
    } else {
      output.target = direct->second.target;
      output.sink = direct->second.sink;
    }
    planned_pass pass{current.shape, {}, {}, {}};
    if (current.scans) {
      pass.axes = current.axes;
      pass.scan = wanted_scan{*current.scans, output};
    } else {
      const node_ref tiles = current.before ? make_transformed_leaf(current, results_.values())
                                            : make_rolling_leaf(current, results_.values());
      pass.outputs.push_back({tiles, output.target, output.sink});
    }
    body(pass, results_.values());
    if (direct == direct_.end()) results_.add(current, output.target);
  }

  template <class Allocate, class Read>
  void read_tiles(const detail::stage& made, Allocate allocate, Read read) {
    const detail::indexed_leaf& leaf = *read_from_tiles(made);
    std::vector<tensor> indices;
    for (const node_ref& index : leaf.indices)
      indices.push_back(tensor_of(*index, results_.values()));
    const auto direct = direct_.find(&made);
    const tensor target =
        direct == direct_.end() ? allocate(made.input->shape, made.type) : direct->second.target;
    read(leaf, indices, target);
    if (direct == direct_.end()) results_.add(made, target.view(made.shape));
  }

  // Whether elements that are read from tiles can be stored in the output directly. The indices
  // must not lie in the output. Mapped outputs are excluded, because only a pass keeps their pages
  // inside the budget.
  static bool can_read_into(const wanted_output& output, const detail::indexed_leaf& leaf) {
    if (output.sink || detail::is_mapped(output.target.storage())) return false;
    return !reads_indices_of(leaf, output.target);
  }

  // Whether a reduction can deliver its results to the output directly. It delivers them row by
  // row, while other parts of its input are still read, so its input must not lie in the output.
  // Mapped outputs are excluded, because only a pass that writes them keeps their pages inside the
  // budget.
  static bool can_fold_into(const wanted_output& output, const detail::stage& made) {
    const tensor& target = output.target;
    return !output.sink && target.is_contiguous() && target.writable() &&
           !detail::is_mapped(target.storage()) && !reads_bytes_of(made.input, target);
  }

  // Whether the stage writes its result to the output itself, if nothing else reads the result.
  static bool writes_itself(const wanted_output& output, const detail::stage& made) {
    if (made.reduces) return can_fold_into(output, made);
    if (has_own_pass(made)) return !replaces_its_input(made, output);
    const auto* const leaf = read_from_tiles(made);
    return leaf && made.shape == made.input->shape && can_read_into(output, *leaf);
  }

  // Whether `value` is computed from tiles of the sink. A pass that writes the sink would replace
  // these tiles while it still reads them.
  static bool reads(const node_ref& value, const tile_source* sink) {
    const auto nodes = post_order(value);
    return std::any_of(nodes.begin(), nodes.end(), [&](const node_ref& input) {
      const auto* leaf = std::get_if<detail::source_leaf>(&input->content);
      return leaf && leaf->source->identity() == sink->identity();
    });
  }

  // Whether the pass of a stage would replace elements before it has read them. The pass of a scan
  // copies tensors that overlap its output, but it cannot see the tensors that tiles are computed
  // from.
  static bool replaces_its_input(const detail::stage& made, const wanted_output& output) {
    if (output.sink) return reads(made.input, output.sink);
    return is_tiles(made) && (reads_bytes_of(made.input, output.target) ||
                              (made.factor && reads_bytes_of(made.factor, output.target)));
  }

  // Moves outputs from `outputs_` to `direct_`: those that are the whole result of a stage, in its
  // dtype, if the stage writes them itself and nothing else reads the result.
  void find_direct_outputs() {
    std::vector<wanted_output> rest;
    for (auto& output : outputs_) {
      const auto* staged = std::get_if<detail::staged_leaf>(&output.value->content);
      const bool whole = staged && !staged->map && !staged->under;
      const dtype type = output.sink ? output.sink->dtype() : output.target.dtype();
      if (whole && type == staged->from->type && order_.uses(*staged->from) == 1 &&
          writes_itself(output, *staged->from))
        direct_.emplace(staged->from.get(), std::move(output));
      else rest.push_back(std::move(output));
    }
    outputs_ = std::move(rest);
  }

  template <class Allocate>
  void add_to_pass(growing_pass& pass, const detail::stage& current, Allocate allocate) {
    if (current.reduces) {
      const auto direct = direct_.find(&current);
      const bool is_output = direct != direct_.end();
      const tensor result =
          is_output ? direct->second.target : allocate(current.shape, current.type);
      pass.made.reductions.push_back(
          {current.input, current.kind, current.parameter, result.view(with_folded_axes(current))});
      if (!is_output) results_.add(current, result);
    } else {
      const tensor result = allocate(current.input->shape, current.type);
      pass.made.outputs.push_back({current.input, result, nullptr});
      results_.add(current, result.view(current.shape));
    }
  }

  std::vector<wanted_output> outputs_;
  std::map<const detail::stage*, wanted_output> direct_;  // outputs that are written by a stage
  stage_order order_;
  stage_results results_{order_};
};

}  // namespace shale::ops
