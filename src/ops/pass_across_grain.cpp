#include <algorithm>
#include <memory>

#include "ops/pass_parts.hpp"
#include "parallel/mapped_tiles.hpp"

namespace shale::ops {

namespace {

using parallel::mapped_tiles;

bool is_mapped(const tensor& values) {
  return values.storage().kind() == storage_kind::file &&
         values.storage().access() != access::copy_on_write;
}

// Whether some output shares bytes with another operand, other than element on element: then inputs
// are to be copied first, which is not done here.
bool outputs_overlap(const std::vector<loop_operand>& operands) {
  for (const auto& output : operands) {
    if (!output.written) continue;
    for (const auto& other : operands)
      if (&other != &output && !parallel::same_elements(output.values, other.values) &&
          parallel::may_overlap(output.values, other.values))
        return true;
  }
  return false;
}

bool has_sink(const pass& which) {
  return std::any_of(which.outputs.begin(), which.outputs.end(),
                     [](const pass_output& output) { return output.sink != nullptr; });
}

}  // namespace

bool run_across_grain(const pass& which, const tape& program, const staged_values& staged,
                      const leaf_sources& sources, executor& on) {
  if (!which.reductions.empty() || has_sink(which)) return false;
  std::vector<loop_operand> operands;  // outputs, then leaves that are tensors
  std::size_t source_bytes = 0;        // an element of all leaves that are none
  for (const auto& output : which.outputs) operands.push_back({output.into, true});
  for (std::size_t k = 0; k < sources.size(); ++k) {
    if (sources[k]) source_bytes += item_bytes(sources[k]->source->dtype());
    else operands.push_back({tensor_of(*program.leaves()[k], staged), false});
  }
  std::size_t mapped_bytes = 0;
  for (const auto& each : operands)
    if (is_mapped(each.values)) mapped_bytes += each.values.size_bytes();
  if (mapped_bytes <= on.memory_bytes() / 2 || outputs_overlap(operands)) return false;
  parallel::prepare(operands, on);
  if (source_bytes == 0 && !parallel::make_plan(operands).is_blocked()) return false;

  std::vector<plan_operand> tiled;
  std::size_t element_bytes = source_bytes;
  std::vector<bool> by_tiles;
  for (const auto& each : operands) {
    const bool large = each.values.size_bytes() > on.memory_bytes() / 8;
    by_tiles.push_back(large && is_mapped(each.values) && !each.values.geometry().is_broadcast());
    if (!by_tiles.back()) continue;
    tiled.push_back({each.values.geometry(), each.values.item_bytes()});
    element_bytes += each.values.item_bytes();
  }
  if (tiled.empty()) return false;
  const auto at_once = static_cast<std::size_t>(std::min(on.threads(), 4));
  const auto most = static_cast<index_t>(on.memory_bytes() / 2 / at_once / element_bytes);
  const dims least =
      source_bytes > 0 ? unit_shape(which, sources) : dims::filled(which.shape.size(), 1);
  const dims tile_shape = parallel::balanced_tile_shape(tiled, least, most);
  if (source_bytes > 0 && tile_shape == least) return false;  // nothing to gain

  std::vector<std::shared_ptr<mapped_tiles>> grids;  // null: as it is
  for (std::size_t k = 0; k < operands.size(); ++k)
    grids.push_back(by_tiles[k] ? std::make_shared<mapped_tiles>(operands[k].values, tile_shape)
                                : nullptr);
  pass tiles = which;
  const std::size_t outputs = which.outputs.size();
  for (std::size_t k = 0; k < outputs; ++k) tiles.outputs[k].sink = grids[k].get();
  std::vector<std::unique_ptr<detail::source_leaf>> leaves;
  leaf_sources all_sources = sources;
  std::size_t next = outputs;
  for (auto& source : all_sources) {
    if (source) continue;
    const auto& grid = grids[next++];
    if (!grid) continue;
    leaves.push_back(std::make_unique<detail::source_leaf>(
        detail::source_leaf{grid, axis_map::identity(which.shape)}));
    source = leaves.back().get();
  }
  run_by_tiles(tiles, program, staged, all_sources, on);
  for (std::size_t k = 0; k < outputs; ++k)
    if (grids[k]) grids[k]->finish();
  parallel::conclude(operands);
  return true;
}

}  // namespace shale::ops
