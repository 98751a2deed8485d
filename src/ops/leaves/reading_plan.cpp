#include "ops/leaves/reading_plan.hpp"

#include <algorithm>
#include <utility>

#include "core/grid.hpp"
#include "core/saturating.hpp"
#include "ops/leaves/indices.hpp"
#include "ops/leaves/row_walk.hpp"

namespace shale::ops {

namespace {

using namespace detail;

class planner {
 public:
  planner(const indexed_leaf& leaf, const std::vector<tensor>& indices, const dims& to_bytes)
      : leaf_(leaf),
        indices_(indices),
        to_bytes_(to_bytes),
        seen_(*std::get<source_leaf>(leaf.input->content).map),
        plan_{.source = *std::get<source_leaf>(leaf.input->content).source,
              .inputs = {},
              .input_shape = leaf.input->shape,
              .indices = {},
              .fixed = {},
              .runs = {},
              .points = {},
              .to = {}} {}

  reading_plan plan() {
    plan_.is_flat = leaf_.axes.size() == 1 && plan_.input_shape.size() != 1;
    const axis_map& map = *leaf_.map;
    std::vector<index_t> point_axes;                                               // of the output
    std::vector<bool> is_run(static_cast<std::size_t>(seen_.base.size()), false);  // by source axis
    for (index_t axis = 0; axis < map.rank(); ++axis) {
      const index_t input = input_moved_by(map.from[axis]);
      if (input < 0) {
        point_axes.push_back(axis);
        continue;
      }
      is_run[static_cast<std::size_t>(seen_.from[input])] = true;
      add_run(axis, input);
    }
    std::sort(plan_.runs.begin(), plan_.runs.end(),
              [](const run_axis& a, const run_axis& b) { return a.axis < b.axis; });
    for (const index_t axis : point_axes) {
      plan_.points.push_back(map.shape[axis]);
      plan_.to.push_back(to_bytes_[axis]);
    }
    add_inputs(point_axes);
    add_indices(point_axes);
    for (index_t axis = 0; axis < seen_.base.size(); ++axis)
      if (!is_run[static_cast<std::size_t>(axis)]) add_fixed(axis);
    return std::move(plan_);
  }

 private:
  // The only axis of the input that an axis of the leaf moves along. -1 if there is none, if an
  // index depends on the axis of the leaf, or if no axis of the source belongs to the axis of the
  // input.
  index_t input_moved_by(index_t leaf_axis) const {
    if (leaf_axis < 0 || plan_.is_flat) return -1;
    for (const tensor& index : indices_)
      if (index.stride(leaf_axis) != 0 && index.shape(leaf_axis) > 1) return -1;
    index_t found = -1;
    for (std::size_t input = 0; input < leaf_.axes.size(); ++input) {
      if (leaf_.axes[input].index >= 0 || leaf_.axes[input].axis != leaf_axis) continue;
      if (found >= 0) return -1;
      found = static_cast<index_t>(input);
    }
    return found >= 0 && seen_.from[found] >= 0 ? found : -1;
  }

  void add_run(index_t axis, index_t input) {
    const axis_map& map = *leaf_.map;
    const index_t from = seen_.from[input];
    const index_t count = map.shape[axis];
    index_t start = seen_.base[from] + seen_.step[input] * map.base[map.from[axis]];
    index_t step = count > 1 ? seen_.step[input] * map.step[axis] : 1;
    index_t to = to_bytes_[axis];
    if (step < 0) {
      start += (count - 1) * step;
      step = -step;
      plan_.first += (count - 1) * to;
      to = -to;
    }
    plan_.runs.push_back({from, start, step, count, plan_.source.tile_shape()[from], to});
  }

  void add_inputs(const std::vector<index_t>& point_axes) {
    const axis_map& map = *leaf_.map;
    for (std::size_t input = 0; input < leaf_.axes.size(); ++input) {
      const position_of_axis& from = leaf_.axes[input];
      const auto axis = static_cast<index_t>(input);
      input_position position{
          .index = from.index,
          .named = from.named < 0 ? axis : from.named,
          .extent = plan_.is_flat ? element_count(plan_.input_shape) : plan_.input_shape[axis],
          .step = dims::filled(static_cast<index_t>(point_axes.size()), 0)};
      if (from.index < 0 && from.axis >= 0) {
        position.base = map.base[from.axis];
        for (std::size_t k = 0; k < point_axes.size(); ++k)
          if (map.from[point_axes[k]] == from.axis)
            position.step[static_cast<index_t>(k)] = map.step[point_axes[k]];
      }
      plan_.inputs.push_back(position);
    }
  }

  void add_indices(const std::vector<index_t>& point_axes) {
    const axis_map& map = *leaf_.map;
    for (const tensor& index : indices_) {
      const element_address address(index);
      point_index made{address.first(), {}};
      for (index_t axis = 0; axis < map.base.size(); ++axis)
        made.first += map.base[axis] * address.stride(axis);
      for (const index_t axis : point_axes) {
        const bool moves = map.from[axis] >= 0 && map.shape[axis] > 1;
        made.stride.push_back(moves ? map.step[axis] * address.stride(map.from[axis]) : 0);
      }
      plan_.indices.push_back(made);
    }
  }

  void add_fixed(index_t axis) {
    const index_t extent = plan_.source.tile_shape()[axis];
    fixed_axis made{.axis = axis,
                    .input = -1,
                    .base = seen_.base[axis],
                    .step = 0,
                    .extent = extent,
                    .inside = std::min(extent, plan_.source.shape()[axis]),
                    .tiles = ceil_div(plan_.source.shape()[axis], extent)};
    for (index_t input = 0; input < seen_.rank(); ++input)
      if (seen_.from[input] == axis) {
        made.input = input;
        made.step = seen_.step[input];
      }
    plan_.fixed.push_back(made);
  }

  const indexed_leaf& leaf_;
  const std::vector<tensor>& indices_;
  const dims& to_bytes_;
  const axis_map& seen_;
  reading_plan plan_;
};

}  // namespace

index_t run_axis::tiles() const {
  return step > extent ? count : (start + (count - 1) * step) / extent - start / extent + 1;
}

run_in_tile run_axis::at(index_t number) const {
  index_t first = number;
  if (step <= extent) {
    const index_t distance = (start / extent + number) * extent - start;
    first = distance <= 0 ? 0 : ceil_div(distance, step);
  }
  const index_t position = start + first * step;
  const index_t offset = position % extent;
  return {position / extent, first, std::min((extent - offset - 1) / step + 1, count - first),
          offset};
}

std::uint64_t reading_plan::fixed_tiles() const {
  std::uint64_t tiles = 1;
  for (const fixed_axis& axis : fixed)
    tiles = saturating_mul(tiles, static_cast<std::uint64_t>(axis.tiles));
  return tiles;
}

index_t reading_plan::tiles_of_runs() const {
  index_t tiles = 1;
  for (const run_axis& axis : runs) tiles *= axis.tiles();
  return tiles;
}

reading_plan plan_reading(const indexed_leaf& leaf, const std::vector<tensor>& indices,
                          const dims& to_bytes) {
  return planner(leaf, indices, to_bytes).plan();
}

}  // namespace shale::ops
