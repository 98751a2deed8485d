#include "ops/pass_parts.hpp"
#include "parallel/tile_loop.hpp"

namespace shale::ops {

namespace {

struct memory_operands {
  std::vector<loop_operand> operands;  // outputs, then leaves; broadcast to the pass's shape
  std::vector<plan_operand> planned;   // the same, and the states' layout behind them
};

memory_operands operands_in_memory(const pass& which, const tape& program,
                                   const staged_values& staged) {
  memory_operands result;
  for (const auto& output : which.outputs) result.operands.push_back({output.into, true});
  for (const auto& leaf : program.leaves())
    result.operands.push_back({tensor_of(*leaf, staged), false});
  return result;
}

void add_plan_operands(memory_operands& to, const pass& which) {
  for (const auto& operand : to.operands)
    to.planned.push_back({operand.values.geometry(), operand.values.item_bytes()});
  if (!which.reductions.empty())
    to.planned.push_back({state_layout(which.shape, which.axes), 1, false});
}

// Strides of a tile's own states along each plan axis: row-major over the kept axes, whose strides
// in the plan's last operand are not 0.
dims local_state_strides(const plan& over, const dims& box) {
  const dims& kept = over.strides_bytes(over.operands() - 1);
  dims strides = dims::filled(over.rank(), 0);
  index_t next = 1;
  for (index_t axis = over.rank() - 1; axis >= 0; --axis) {
    if (kept[axis] == 0) continue;
    strides[axis] = next;
    next *= box[axis];
  }
  return strides;
}

tree_place place_in_memory(const plan& over, index_t tile) {
  const dims& kept = over.strides_bytes(over.operands() - 1);
  dims at = dims::filled(over.rank(), 0);
  for (index_t axis = over.rank() - 1; axis >= 0; --axis) {
    at[axis] = tile % over.grid()[axis];
    tile /= over.grid()[axis];
  }
  tree_place place;
  for (index_t axis = 0; axis < over.rank(); ++axis) {
    index_t& number = kept[axis] != 0 ? place.group : place.leaf;
    number = number * over.grid()[axis] + at[axis];
  }
  return place;
}

// Scatters a finished box of results: the plan's merged axes know their places in row-major order
// of the kept extents by the strides of its last operand.
void finish_in_memory(const plan& over, const plan::box& box, const storage& root,
                      const states& folds, const std::vector<pass_reduction>& reductions,
                      memory_pool& pool) {
  const dims& kept = over.strides_bytes(over.operands() - 1);
  dims shape, strides;
  index_t first = over.origin_bytes(over.operands() - 1);
  for (index_t axis = 0; axis < over.rank(); ++axis) {
    if (kept[axis] == 0) continue;
    shape.push_back(box.shape[axis]);
    strides.push_back(kept[axis]);
    first += box.start[axis] * kept[axis];
  }
  const index_t results = element_count(shape);
  for (std::size_t r = 0; r < folds.count(); ++r) {
    const tensor block = tensor::empty(shape, folds.at(r).result, &pool);
    folds.at(r).finish(root.data() + folds.offset(r, results), const_cast<std::byte*>(block.data()),
                       results, reductions[r].parameter);
    const tensor& into = reductions[r].into;
    parallel::copy_elements_here(into.as_strided(shape, strides, into.offset() + first), block);
  }
}

}  // namespace

void run_in_memory(const pass& which, const tape& program, const staged_values& staged,
                   executor& on) {
  memory_operands all = operands_in_memory(which, program, staged);
  parallel::prepare(all.operands, on);
  add_plan_operands(all, which);
  const plan over(all.planned,
                  {.block_elements = program.block_elements(), .keep_axes = program.generates()});
  const auto addresses = parallel::bases(all.operands);
  const dims origin = program.generates() ? dims::filled(which.shape.size(), 0) : dims{};
  const states folds(which.reductions);
  const bool reduces = folds.count() > 0;

  std::size_t outputs_item = 0;
  std::size_t leaves_item = 0;
  for (const auto& operand : all.operands)
    (operand.written ? outputs_item : leaves_item) += operand.values.item_bytes();
  byte_counter bytes(on);

  index_t leaves = 1;
  if (reduces) {
    const dims& kept = over.strides_bytes(over.operands() - 1);
    for (index_t axis = 0; axis < over.rank(); ++axis)
      if (kept[axis] == 0) leaves *= over.grid()[axis];
  }
  reduction_tree tree(leaves);
  worker_scratch scratch(program.scratch_bytes(), on);
  parallel::window_walk walk(over, parallel::streamed(all.operands), on);
  auto run_tile = [&](index_t tile, int worker) {
    parallel::window_walk::tile_visit visit(walk, tile);
    const plan::box box = over.tile(tile);
    const auto here = static_cast<std::uint64_t>(element_count(box.shape));
    bytes.add(here * leaves_item, here * outputs_item);
    box_work work{program, over, addresses, scratch.of(worker)};
    work.origin = origin;
    if (!reduces) {
      work.run(box);
    } else {
      work.folds = &folds;
      work.state_strides = local_state_strides(over, box.shape);
      work.state_start = box.start;
      work.results = 1;
      const dims& kept = over.strides_bytes(over.operands() - 1);
      for (index_t axis = 0; axis < over.rank(); ++axis)
        if (kept[axis] != 0) work.results *= box.shape[axis];
      storage partial = folds.make(work.results, on.pool());
      work.partial = partial.data();
      work.run(box);
      const tree_place place = place_in_memory(over, tile);
      const storage root = tree.insert(
          place.group, place.leaf, partial,
          [&](storage& into, const storage& from) { folds.merge(into, from, work.results); });
      if (root) finish_in_memory(over, box, root, folds, which.reductions, on.pool());
    }
    visit.end();
  };
  const auto elements = static_cast<std::uint64_t>(element_count(which.shape));
  parallel::for_each_tile(on, over.tile_count(), run_tile,
                          {.most_workers = walk.workers_max(),
                           .progress_bytes = elements * (leaves_item + outputs_item)});
  walk.finish();
  parallel::conclude(all.operands);
}

}  // namespace shale::ops
