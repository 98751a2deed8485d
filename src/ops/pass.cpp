#include "ops/pass.hpp"

#include <algorithm>
#include <map>

#include "ops/pass_parts.hpp"
#include "ops/tiles_touched.hpp"

namespace shale::ops {

namespace {

template <class Wanted>
std::vector<node_ref> values_of(const std::vector<Wanted>& all) {
  std::vector<node_ref> values;
  values.reserve(all.size());
  for (const auto& each : all) values.push_back(each.value);
  return values;
}

}  // namespace

tape compile_pass(const pass& which, const staged_values& staged, executor& on) {
  std::vector<dtype> types;
  std::vector<tensor> written;
  for (const auto& output : which.outputs) {
    types.push_back(output.sink ? output.sink->dtype() : output.into.dtype());
    if (!output.sink) written.push_back(output.into);
  }
  return compile(values_of(which.outputs), types, values_of(which.reductions), staged, written, on);
}

namespace {

leaf_sources sources_of(const tape& program) {
  leaf_sources result;
  for (const auto& leaf : program.leaves())
    result.push_back(std::get_if<detail::source_leaf>(&leaf->what));
  return result;
}

bool goes_by_tiles(const pass& which, const leaf_sources& sources) {
  return std::any_of(sources.begin(), sources.end(), [](auto* leaf) { return leaf != nullptr; }) ||
         std::any_of(which.outputs.begin(), which.outputs.end(),
                     [](const pass_output& output) { return output.sink != nullptr; });
}

// Folding nothing: every result is that of an empty state.
void finish_empty(const pass& which, executor& on) {
  const states folds(which.reductions);
  if (which.reductions[0].into.size() == 0) return;
  const region everything = region::all(which.reductions[0].into.shape());
  const storage partial = folds.make(element_count(everything.shape), on.pool());
  folds.finish(partial, everything, on.pool());
}

}  // namespace

void run(const pass& which, const staged_values& staged, executor& on) {
  auto& count = on.state().count;
  count.calls.fetch_add(1, std::memory_order_relaxed);
  for (const auto& each : which.reductions)
    count.bytes_written.fetch_add(each.into.size_bytes(), std::memory_order_relaxed);
  if (element_count(which.shape) == 0) {
    // Nothing is written, but what may not be written is refused all the same.
    std::vector<loop_operand> written;
    for (const auto& output : which.outputs)
      if (!output.sink) written.push_back({output.into, true});
    parallel::prepare(written, on);
    if (!which.reductions.empty()) finish_empty(which, on);
    return;
  }
  const tape program = compile_pass(which, staged, on);
  const leaf_sources sources = sources_of(program);
  if (run_across_grain(which, program, staged, sources, on)) return;
  if (goes_by_tiles(which, sources)) run_by_tiles(which, program, staged, sources, on);
  else run_in_memory(which, program, staged, on);
}

pass_cost cost(const pass& which, const staged_values& staged, executor& on) {
  const tape program = compile_pass(which, staged, on);
  const auto elements = static_cast<std::uint64_t>(element_count(which.shape));
  pass_cost result;
  std::uint64_t mapped = 0;
  const auto add_mapped = [&](const tensor& values) {
    if (values.storage().kind() == storage_kind::file) mapped += values.size_bytes();
  };
  std::map<const tile_source*, std::vector<axis_map>> views;
  for (const auto& leaf : program.leaves()) {
    if (const auto* seen = std::get_if<detail::source_leaf>(&leaf->what)) {
      views[seen->source.get()].push_back(seen->map);
      continue;
    }
    result.bytes_read += elements * item_bytes(leaf->type);
    add_mapped(tensor_of(*leaf, staged));
  }
  for (const auto& [source, maps] : views) {
    const tile_amount touched = tiles_touched(*source, maps);
    result.tiles_decoded += touched.tiles;
    result.bytes_read += touched.elements * item_bytes(source->dtype());
  }
  for (const auto& output : which.outputs) {
    result.bytes_written +=
        elements * item_bytes(output.sink ? output.sink->dtype() : output.into.dtype());
    if (!output.sink) add_mapped(output.into);
  }
  for (const auto& each : which.reductions) result.bytes_written += each.into.size_bytes();
  result.scratch_bytes_per_thread = program.scratch_bytes();
  result.instructions = static_cast<int>(program.instruction_count());
  result.streams = mapped > on.memory_bytes() / 2;
  return result;
}

}  // namespace shale::ops
