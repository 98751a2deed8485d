#include <algorithm>
#include <cstdlib>

#include "ops/pass_parts.hpp"
#include "parallel/tile_cache.hpp"
#include "parallel/tile_loop.hpp"

namespace shale::ops {

using detail::source_leaf;

namespace {

// The elements of a source that a box of the pass reads, side by side, as the pass sees them.
tensor source_box(const source_leaf& seen, const plan::box& box, parallel::tile_cache& cache,
                  executor& on) {
  const dims& shape = seen.source->shape();
  parallel::stepped_region needed{seen.map.base, dims::filled(shape.size(), 1),
                                  dims::filled(shape.size(), 1)};
  axis_map local;
  local.shape = box.shape;
  local.from = seen.map.from;
  local.step = dims::filled(box.shape.size(), 1);
  local.base = dims::filled(shape.size(), 0);
  for (index_t axis = 0; axis < box.shape.size(); ++axis) {
    const index_t from = seen.map.from[axis];
    if (from < 0) continue;
    const index_t step = seen.map.step[axis];
    const index_t first = needed.start[from] + box.start[axis] * step;
    const index_t last = first + (box.shape[axis] - 1) * step;
    needed.start[from] = std::min(first, last);
    needed.shape[from] = box.shape[axis];
    if (box.shape[axis] == 1) continue;
    needed.step[from] = std::abs(step);
    if (step > 0) continue;
    local.step[axis] = -1;
    local.base[from] = box.shape[axis] - 1;
  }
  const tensor loaded = parallel::read_region(*seen.source, needed, cache, on);
  return tensor(loaded.storage(), loaded.dtype(), local.applied_to(loaded.geometry()));
}

tensor narrowed(const tensor& values, const plan::box& box) {
  tensor part = values;
  for (index_t axis = 0; axis < box.shape.size(); ++axis)
    part = part.narrow(axis, box.start[axis], box.shape[axis]);
  return part;
}

// A plan has at least one axis; a pass of rank 0 has none.
plan::box unit_box(const plan& units, index_t number, index_t rank) {
  plan::box box = units.tile(number);
  if (rank == 0) box = {};
  return box;
}

dims grid_index(const plan& units, index_t number, index_t rank) {
  dims at = dims::filled(rank, 0);
  for (index_t axis = rank - 1; axis >= 0; --axis) {
    at[axis] = number % units.grid()[axis];
    number /= units.grid()[axis];
  }
  return at;
}

}  // namespace

dims unit_shape(const pass& which, const leaf_sources& sources) {
  for (const auto& output : which.outputs)
    if (output.sink) return output.sink->tile_shape();
  dims unit = which.shape;
  dims walked = dims::filled(unit.size(), 0);
  for (const auto* leaf : sources) {
    if (leaf == nullptr) continue;
    const auto& seen = *leaf;
    for (index_t axis = 0; axis < unit.size(); ++axis) {
      const index_t from = seen.map.from[axis];
      if (from < 0 || walked[axis]) continue;
      walked[axis] = 1;
      const index_t step = std::abs(seen.map.step[axis]);
      unit[axis] =
          std::max<index_t>(1, seen.source->tile_shape()[from] / std::max<index_t>(step, 1));
    }
  }
  // Axes that no source walks (broadcast ones) are cut as well, or a unit could be huge.
  constexpr index_t unit_elements_max = index_t{1} << 20;
  for (index_t axis = 0; axis < unit.size(); ++axis) {
    index_t rest = 1;
    for (index_t other = 0; other < unit.size(); ++other)
      if (other != axis) rest *= std::max<index_t>(unit[other], 1);
    if (rest * std::max<index_t>(unit[axis], 1) <= unit_elements_max) break;
    if (!walked[axis])
      unit[axis] = std::max<index_t>(1, unit_elements_max / std::max<index_t>(rest, 1));
  }
  return unit;
}

void run_by_tiles(const pass& which, const tape& program, const staged_values& staged,
                  const leaf_sources& sources, executor& on) {
  const index_t rank = which.shape.size();
  std::vector<loop_operand> resident;  // outputs and leaves in memory
  for (const auto& output : which.outputs)
    if (!output.sink) resident.push_back({output.into, true});
  for (std::size_t k = 0; k < sources.size(); ++k)
    if (!sources[k]) resident.push_back({tensor_of(*program.leaves()[k], staged), false});
  // A stand-in of the pass's shape keeps `prepare` and the plan right where nothing is resident.
  static const storage nothing = storage::allocate(1);
  resident.push_back(
      {tensor(nothing, dtype::boolean, layout(which.shape, dims::filled(which.shape.size(), 0), 0)),
       false});
  parallel::prepare(resident, on);

  std::vector<plan_operand> planned;
  planned.reserve(resident.size());
  for (const auto& operand : resident)
    planned.push_back({operand.values.geometry(), operand.values.item_bytes()});
  const dims unit = unit_shape(which, sources);
  const plan units(planned, {.keep_axes = true, .tile_shape = unit});

  const states folds(which.reductions);
  const bool reduces = folds.count() > 0;
  dims folded = dims::filled(which.shape.size(), 0);
  for (const index_t axis : which.axes) folded[axis] = 1;
  index_t leaves = 1;
  for (index_t axis = 0; axis < which.shape.size(); ++axis)
    if (folded[axis]) leaves *= units.grid()[axis];
  reduction_tree tree(leaves);

  std::size_t read_bytes = 0;
  const auto unit_elements = static_cast<std::size_t>(element_count(units.tile_shape()));
  for (const auto* leaf : sources)
    if (leaf) read_bytes += unit_elements * item_bytes(leaf->source->dtype());
  std::size_t unit_bytes = read_bytes;
  for (const auto& output : which.outputs)
    if (output.sink) unit_bytes += unit_elements * item_bytes(output.sink->dtype());
  // Units in memory at once take at most half of the budget, if need be with fewer threads.
  const int workers = static_cast<int>(
      std::clamp<std::size_t>(on.memory_bytes() / 2 / std::max<std::size_t>(unit_bytes, 1), 1,
                              static_cast<std::size_t>(on.threads())));
  const parallel::held_tokens tokens(on.state().tokens,
                                     unit_bytes * static_cast<std::size_t>(workers));
  parallel::tile_cache cache(
      std::max(read_bytes * static_cast<std::size_t>(workers), on.memory_bytes() / 4), on);
  worker_scratch scratch(program.scratch_bytes(), on);
  byte_counter bytes(on);
  std::size_t leaves_item = 0;
  std::size_t resident_item = 0;  // of the leaves that are no sources, whose tiles count themselves
  std::size_t outputs_item = 0;
  for (std::size_t k = 0; k < sources.size(); ++k) {
    const std::size_t item = item_bytes(program.leaves()[k]->type);
    leaves_item += item;
    if (!sources[k]) resident_item += item;
  }
  for (const auto& output : which.outputs)
    outputs_item += item_bytes(output.sink ? output.sink->dtype() : output.into.dtype());

  // Reading ahead: the units that the other threads, and then this one, will ask for next.
  const index_t ahead = 2 * on.threads();
  const auto prefetch = [&](index_t number) {
    if (number >= units.tile_count()) return;
    const plan::box box = unit_box(units, number, rank);
    for (const auto* leaf : sources) {
      if (!leaf) continue;
      const auto& seen = *leaf;
      dims tile = seen.map.base;
      for (index_t axis = 0; axis < box.shape.size(); ++axis)
        if (const index_t from = seen.map.from[axis]; from >= 0)
          tile[from] += seen.map.step[axis] * box.start[axis];
      for (index_t axis = 0; axis < tile.size(); ++axis)
        tile[axis] /= seen.source->tile_shape()[axis];
      seen.source->prefetch(tile);
    }
  };
  for (index_t number = 0; number < ahead; ++number) prefetch(number);

  const std::uint64_t progress_bytes =
      static_cast<std::uint64_t>(element_count(which.shape)) * (leaves_item + outputs_item);
  parallel::window_walk walk(units, parallel::streamed(resident), on);
  parallel::for_each_tile(
      on, units.tile_count(),
      [&](index_t number, int worker) {
        prefetch(number + ahead);
        parallel::window_walk::tile_visit visit(walk, number);
        const plan::box box = unit_box(units, number, rank);
        const auto elements = static_cast<std::uint64_t>(element_count(box.shape));
        bytes.add(elements * resident_item, elements * outputs_item);

        std::vector<loop_operand> operands;
        std::size_t next_resident = 0;
        for (const auto& output : which.outputs) {
          if (output.sink)
            operands.push_back({tensor::empty(box.shape, output.sink->dtype(), &on.pool()), true});
          else operands.push_back({narrowed(resident[next_resident++].values, box), true});
        }
        for (const auto* leaf : sources) {
          if (leaf) operands.push_back({source_box(*leaf, box, cache, on), false});
          else operands.push_back({narrowed(resident[next_resident++].values, box), false});
        }
        std::vector<plan_operand> local;
        local.reserve(operands.size() + 1);
        for (const auto& operand : operands)
          local.push_back({operand.values.geometry(), operand.values.item_bytes()});
        if (reduces) local.push_back({state_layout(box.shape, which.axes), 1, false});
        if (local.empty()) local.push_back({layout(box.shape), 1});
        const plan over(local, {.tile_elements = index_t{1} << 62,
                                .block_elements = program.block_elements(),
                                .keep_axes = program.generates(),
                                .state_elements = index_t{1} << 62});
        const auto addresses = parallel::bases(operands);
        box_work work{program, over, addresses, scratch.of(worker)};
        if (program.generates()) work.origin = box.start;
        storage partial;
        region results{box.start, box.shape};
        if (reduces) {
          for (const index_t axis : which.axes) {
            results.start[axis] = 0;
            results.shape[axis] = 1;
          }
          work.folds = &folds;
          work.results = element_count(results.shape);
          work.state_strides = over.strides_bytes(over.operands() - 1);
          work.state_start = dims::filled(over.rank(), 0);
          partial = folds.make(work.results, on.pool());
          work.partial = partial.data();
        }
        for (index_t tile = 0; tile < over.tile_count(); ++tile) work.run(over.tile(tile));
        const dims at = grid_index(units, number, rank);
        for (std::size_t k = 0; k < which.outputs.size(); ++k)
          if (which.outputs[k].sink) which.outputs[k].sink->store(at, operands[k].values);
        if (reduces) {
          tree_place place;
          for (index_t axis = 0; axis < which.shape.size(); ++axis) {
            index_t& to = folded[axis] ? place.leaf : place.group;
            to = to * units.grid()[axis] + at[axis];
          }
          const storage root = tree.insert(
              place.group, place.leaf, partial,
              [&](storage& into, const storage& from) { folds.merge(into, from, work.results); });
          if (root) folds.finish(root, results, on.pool());
        }
        visit.end();
      },
      {.most_workers = walk.workers_max() > 0 ? std::min(workers, walk.workers_max()) : workers,
       .progress_bytes = progress_bytes});
  walk.finish();
  resident.pop_back();
  parallel::conclude(resident);
}

}  // namespace shale::ops
