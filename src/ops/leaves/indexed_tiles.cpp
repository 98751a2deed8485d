#include "ops/leaves/indexed_tiles.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/grid.hpp"
#include "core/saturating.hpp"
#include "ops/leaves/indices.hpp"
#include "ops/leaves/row_walk.hpp"
#include "parallel/executor/executor_state.hpp"
#include "parallel/executor/shared_work.hpp"
#include "parallel/executor/tile_loop.hpp"
#include "parallel/mapped/stored_checksums.hpp"
#include "parallel/operands/loop_operand.hpp"
#include "parallel/sources/decoded_source.hpp"
#include "parallel/sources/load_tile.hpp"

namespace shale::ops {

namespace {

using namespace detail;

// The share of the budget that points may take, and the fewest points of a part.
constexpr std::size_t points_in_budget = 4;
constexpr index_t points_min = 4096;

// The points that one thread finds at a time.
constexpr index_t block_points = index_t{1} << 14;

// The number of tiles per thread that are read ahead.
constexpr index_t tiles_ahead = 4;

// A point whose tile is known.
struct placed_point {
  std::uint64_t tile;    // its number among the tiles of the fixed axes, row-major
  std::uint64_t inside;  // the position in that tile, row-major over fixed_axis::inside
  index_t to;            // bytes from the first element of the output
};
static_assert(sizeof(placed_point) == 24);

// While points are sorted there are two of each, and at most as many counts of 8 bytes. Later there
// is one of each, and at most as many groups of 16 bytes.
constexpr std::size_t bytes_per_point = 2 * sizeof(placed_point) + sizeof(std::uint64_t);

// An axis of the source along which a point has one position: base + step * p, where p is the
// position along an axis of the leaf's input.
struct fixed_axis {
  index_t axis;   // of the source
  index_t input;  // the axis of the leaf's input; -1: p is 0
  index_t base;
  index_t step;
  index_t extent;  // of a tile
  index_t inside;  // of a tile inside the source: user's tiles may be longer than the source
  index_t tiles;
};

// What gives the position along an axis of the leaf's input: an index, or an axis of the leaf, or
// nothing (the position is 0).
struct input_position {
  index_t index = -1;
  index_t named = 0;   // the axis that an error of the index names
  index_t extent = 0;  // of the input's axis
  index_t base = 0;    // of the axis of the leaf: base + the sum of step * c
  dims step = {};      // by point axis
};

// An index tensor over the point axes, in bytes.
struct point_index {
  const std::byte* first;
  dims stride;
};

// Positions of an axis of the source that lie in one tile, all of which the output has.
struct run_in_tile {
  index_t tile;
  index_t first;  // number of the first position in ascending order
  index_t count;
  index_t offset;  // of the first position in the tile
};

// An axis of the source along which every point has all positions of an axis of the output, which
// is not empty. They are numbered in ascending order.
struct run_axis {
  index_t axis;    // of the source
  index_t start;   // the lowest position
  index_t step;    // positive
  index_t count;   // of positions
  index_t extent;  // of a tile
  index_t to;      // bytes of the output between neighbours

  // The number of tiles with a position. If the step is at most the extent of a tile, they are all
  // tiles from the first to the last one; else each position lies in a tile of its own.
  index_t tiles() const {
    return step > extent ? count : (start + (count - 1) * step) / extent - start / extent + 1;
  }

  // The positions in tile `number` of these.
  run_in_tile at(index_t number) const {
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
};

// Where the elements of a leaf lie in its source, as far as it is known without reading an index.
struct reading_plan {
  const tile_source& source;
  std::vector<input_position> inputs;  // by axis of the leaf's input
  bool is_flat = false;                // the only index counts the elements of the input
  dims input_shape;
  std::vector<point_index> indices;
  std::vector<fixed_axis> fixed;
  std::vector<run_axis> runs;
  dims points;        // the shape of the points
  dims to;            // by point axis: bytes of the output
  index_t first = 0;  // bytes from the output's first element to that of the first point

  std::uint64_t fixed_tiles() const {
    std::uint64_t tiles = 1;
    for (const fixed_axis& axis : fixed)
      tiles = saturating_mul(tiles, static_cast<std::uint64_t>(axis.tiles));
    return tiles;
  }

  // The tiles along the run axes together.
  index_t tiles_of_runs() const {
    index_t tiles = 1;
    for (const run_axis& axis : runs) tiles *= axis.tiles();
    return tiles;
  }
};

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

// ---- points -----------------------------------------------------------------------------------

class point_finder {
 public:
  explicit point_finder(const reading_plan& plan) : plan_(plan) {}

  /// Finds the tiles of `count` points from point `first` on.
  /// Throws   invalid_argument (an index is out of range)
  void find(index_t first, index_t count, placed_point* found) const {
    dims at = unravel(first, plan_.points);
    dims positions = dims::filled(plan_.input_shape.size(), 0);
    for (index_t k = 0; k < count; ++k, advance(at, plan_.points)) {
      if (plan_.is_flat) find_flat(at, positions);
      else
        for (index_t input = 0; input < positions.size(); ++input)
          positions[input] = position(plan_.inputs[static_cast<std::size_t>(input)], at);
      found[k] = placed(positions, at);
    }
  }

 private:
  index_t position(const input_position& input, const dims& at) const {
    if (input.index < 0) {
      index_t along = input.base;
      for (index_t axis = 0; axis < at.size(); ++axis) along += input.step[axis] * at[axis];
      return along;
    }
    const point_index& index = plan_.indices[static_cast<std::size_t>(input.index)];
    const std::byte* address = index.first;
    for (index_t axis = 0; axis < at.size(); ++axis) address += index.stride[axis] * at[axis];
    const std::int64_t value = index_at(address);
    const index_t from_start = position_from_start(value, input.extent);
    if (static_cast<std::uint64_t>(from_start) >= static_cast<std::uint64_t>(input.extent))
      throw_index_out_of_range(value, input.named, input.extent);
    return from_start;
  }

  void find_flat(const dims& at, dims& positions) const {
    for_each_coordinate(position(plan_.inputs[0], at), plan_.input_shape, positions.size(),
                        [&](index_t axis, index_t along) { positions[axis] = along; });
  }

  placed_point placed(const dims& positions, const dims& at) const {
    placed_point point{0, 0, plan_.first};
    for (const fixed_axis& axis : plan_.fixed) {
      const index_t along = axis.base + (axis.input < 0 ? 0 : axis.step * positions[axis.input]);
      point.tile = point.tile * static_cast<std::uint64_t>(axis.tiles) +
                   static_cast<std::uint64_t>(along / axis.extent);
      point.inside = point.inside * static_cast<std::uint64_t>(axis.inside) +
                     static_cast<std::uint64_t>(along % axis.extent);
    }
    for (index_t axis = 0; axis < at.size(); ++axis) point.to += plan_.to[axis] * at[axis];
    return point;
  }

  const reading_plan& plan_;
};

// Sorts points by their tiles: by counting, if there are no more tiles than points.
void sort_by_tile(std::vector<placed_point>& points, std::uint64_t tiles) {
  const auto by_tile = [](const placed_point& a, const placed_point& b) { return a.tile < b.tile; };
  if (std::is_sorted(points.begin(), points.end(), by_tile)) return;
  if (tiles > points.size()) return std::sort(points.begin(), points.end(), by_tile);
  std::vector<std::size_t> next(static_cast<std::size_t>(tiles), 0);
  for (const placed_point& point : points) ++next[static_cast<std::size_t>(point.tile)];
  std::exclusive_scan(next.begin(), next.end(), next.begin(), std::size_t{0});
  std::vector<placed_point> sorted(points.size());
  for (const placed_point& point : points)
    sorted[next[static_cast<std::size_t>(point.tile)]++] = point;
  points = std::move(sorted);
}

// ---- tiles ------------------------------------------------------------------------------------

// The points of a part that lie in one tile of the fixed axes: from number `first` on.
struct point_group {
  std::uint64_t tile;
  std::size_t first;
};

// A tile that is loaded: the points that lie in it, and the run along each run axis.
struct touched_tile {
  std::size_t group = 0;
  dims runs;   // as run_axis::at numbers tiles, by run axis
  dims index;  // in the grid of the source
};

// The tiles of a part, in the row-major order of the grid. They are the combinations of the groups'
// tiles along the fixed axes and of all runs along the run axes.
class touched_tiles {
 public:
  touched_tiles(const reading_plan& plan, const std::vector<point_group>& groups)
      : plan_(plan), groups_(groups) {}

  index_t count() const { return static_cast<index_t>(groups_.size()) * plan_.tiles_of_runs(); }

  /// Tile `number`, 0 <= number < count(). The axes are looked at in order. On the way, the groups
  /// from `low` to `high` - 1 have the tile's positions along the fixed axes so far, and each of
  /// them stands for `rest` tiles.
  touched_tile tile_at(index_t number) const {
    touched_tile tile{
        .group = 0, .runs = {}, .index = dims::filled(plan_.source.shape().size(), 0)};
    std::size_t low = 0, high = groups_.size();
    index_t rest = plan_.tiles_of_runs();
    auto run = plan_.runs.begin();
    auto fixed = plan_.fixed.begin();
    std::uint64_t behind = plan_.fixed_tiles();  // the tiles along the fixed axes to come
    for (index_t axis = 0; axis < tile.index.size(); ++axis) {
      if (run != plan_.runs.end() && run->axis == axis) {
        rest /= run->tiles();
        const index_t each = static_cast<index_t>(high - low) * rest;
        tile.runs.push_back(number / each);
        tile.index[axis] = run->at(number / each).tile;
        number %= each;
        ++run;
        continue;
      }
      const auto tiles = static_cast<std::uint64_t>(fixed->tiles);
      behind /= tiles;
      const auto prefix = [&](std::size_t group) { return groups_[group].tile / behind; };
      const std::uint64_t wanted = prefix(low + static_cast<std::size_t>(number / rest));
      const std::size_t before = low;
      low = first_group(low, high, [&](std::size_t group) { return prefix(group) >= wanted; });
      high = first_group(low, high, [&](std::size_t group) { return prefix(group) > wanted; });
      number -= static_cast<index_t>(low - before) * rest;
      tile.index[axis] = static_cast<index_t>(wanted % tiles);
      ++fixed;
    }
    tile.group = low;
    return tile;
  }

 private:
  // The first of the groups for which `holds` is true; it is true for all later ones, too.
  template <class Holds>
  static std::size_t first_group(std::size_t low, std::size_t high, Holds holds) {
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (holds(middle)) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  const reading_plan& plan_;
  const std::vector<point_group>& groups_;
};

// The elements that a point has in a tile.
struct copied_box {
  dims count;
  dims from;  // bytes between neighbours
  dims to;
};

template <std::size_t item>
void copy_box(const copied_box& box, const std::byte* from, std::byte* to) {
  const index_t last = box.count.size() - 1;
  if (last < 0) {
    std::memcpy(to, from, item);
    return;
  }
  dims outer = box.count;
  outer.erase(last);
  dims at = dims::filled(last, 0);
  do {
    const std::byte* next = from;
    std::byte* target = to;
    for (index_t axis = 0; axis < last; ++axis) {
      next += at[axis] * box.from[axis];
      target += at[axis] * box.to[axis];
    }
    if (box.to[last] == static_cast<index_t>(item)) {
      copy_run<item>(target, next, box.count[last], box.from[last]);
      continue;
    }
    for (index_t i = 0; i < box.count[last]; ++i, next += box.from[last], target += box.to[last])
      std::memcpy(target, next, item);
  } while (advance(at, outer));
}

// Reads the elements of some points.
class part_reading {
 public:
  part_reading(const reading_plan& plan, const std::vector<placed_point>& points, const tensor& out,
               executor& on)
      : plan_(plan), points_(points), out_(out), on_(on) {
    const auto begins = [&](std::size_t k) {
      return k == 0 || points[k].tile != points[k - 1].tile;
    };
    std::size_t count = 0;
    for (std::size_t k = 0; k < points.size(); ++k)
      if (begins(k)) ++count;
    groups_.reserve(count);
    for (std::size_t k = 0; k < points.size(); ++k)
      if (begins(k)) groups_.push_back({points[k].tile, k});
    for (const fixed_axis& axis : plan.fixed) fixed_extents_.push_back(axis.inside);
  }

  void read(std::uint64_t part_bytes) const {
    const touched_tiles tiles(plan_, groups_);
    const index_t count = tiles.count();
    const auto* const kept =
        part_bytes < saturating_mul(static_cast<std::uint64_t>(count), tile_bytes())
            ? parallel::to_keep_decoded(plan_.source, static_cast<std::uint64_t>(count), on_)
            : nullptr;
    const index_t ahead = tiles_ahead * on_.threads();
    const auto prefetch = [&](index_t number) {
      if (number >= count) return;
      const parallel::foreign_call call;
      plan_.source.prefetch(tiles.tile_at(number).index);
    };
    if (count > 1)
      for (index_t number = 0; number < ahead; ++number) prefetch(number);
    parallel::parallel_for_tiles(on_, count,
                                 [&](index_t number, int) {
                                   prefetch(number + ahead);
                                   const touched_tile tile = tiles.tile_at(number);
                                   copy_points(tile, loaded(tile.index, kept));
                                 },
                                 {.workers_max = workers(), .progress_bytes = part_bytes});
  }

 private:
  std::uint64_t tile_bytes() const {
    std::uint64_t bytes = item_bytes(plan_.source.dtype());
    for (const index_t extent : plan_.source.tile_shape())
      bytes = saturating_mul(bytes, static_cast<std::uint64_t>(extent));
    return bytes;
  }

  // Limits the threads so that their tiles fit in half of the budget. A thread that decodes a tile
  // holds about four times its bytes.
  int workers() const {
    const std::uint64_t held = std::max<std::uint64_t>(saturating_mul(4, tile_bytes()), 1);
    return static_cast<int>(std::clamp<std::uint64_t>(on_.memory_bytes() / 2 / held, 1,
                                                      static_cast<std::uint64_t>(on_.threads())));
  }

  tensor loaded(const dims& index, const parallel::decoded_source* kept) const {
    if (kept != nullptr) return kept->decoded_tile(index, on_);
    const region box = tile_region(plan_.source.shape(), plan_.source.tile_shape(), index);
    const tensor values = tensor::empty(box.shape, plan_.source.dtype(), &on_.pool());
    parallel::load_tile(plan_.source, index, values, on_);
    return values;
  }

  void copy_points(const touched_tile& tile, const tensor& values) const {
    switch (values.item_bytes()) {
      case 1:
        return copy_points_of<1>(tile, values);
      case 2:
        return copy_points_of<2>(tile, values);
      case 4:
        return copy_points_of<4>(tile, values);
      case 8:
        return copy_points_of<8>(tile, values);
      default:
        return copy_points_of<16>(tile, values);
    }
  }

  template <std::size_t item>
  void copy_points_of(const touched_tile& tile, const tensor& values) const {
    const std::byte* from = values.data();
    std::byte* to = out_.data();
    copied_box box;
    for (std::size_t k = 0; k < plan_.runs.size(); ++k) {
      const run_axis& axis = plan_.runs[k];
      const run_in_tile run = axis.at(tile.runs[static_cast<index_t>(k)]);
      const index_t stride = values.stride(axis.axis) * static_cast<index_t>(item);
      from += run.offset * stride;
      to += run.first * axis.to;
      box.count.push_back(run.count);
      box.from.push_back(run.count > 1 ? axis.step * stride : 0);
      box.to.push_back(axis.to);
    }
    const std::size_t end =
        tile.group + 1 < groups_.size() ? groups_[tile.group + 1].first : points_.size();
    for (std::size_t k = groups_[tile.group].first; k < end; ++k) {
      index_t distance = 0;
      for_each_coordinate(static_cast<index_t>(points_[k].inside), fixed_extents_,
                          fixed_extents_.size(), [&](index_t axis, index_t along) {
                            const index_t own = plan_.fixed[static_cast<std::size_t>(axis)].axis;
                            distance += along * values.stride(own);
                          });
      copy_box<item>(box, from + distance * static_cast<index_t>(item), to + points_[k].to);
    }
  }

  const reading_plan& plan_;
  const std::vector<placed_point>& points_;
  const tensor& out_;
  executor& on_;
  std::vector<point_group> groups_;
  dims fixed_extents_;
};

// Finds the tiles of the points from `first` to `end` - 1, and reads their elements.
void read_part(const reading_plan& plan, index_t first, index_t end, std::uint64_t part_bytes,
               const tensor& out, executor& on) {
  std::vector<placed_point> points(static_cast<std::size_t>(end - first));
  const parallel::held_tokens held(parallel::state_of(on).tokens, points.size() * bytes_per_point);
  const point_finder finder(plan);
  parallel::parallel_for_tiles(on, ceil_div(end - first, block_points),
                               [&](index_t block, int) {
                                 const index_t begin = first + block * block_points;
                                 finder.find(begin, std::min(block_points, end - begin),
                                             points.data() + (begin - first));
                               },
                               {.counted = false});
  sort_by_tile(points, plan.fixed_tiles());
  part_reading(plan, points, out, on).read(part_bytes);
}

dims stride_bytes(const tensor& values) {
  dims bytes;
  for (const index_t stride : values.strides())
    bytes.push_back(stride * static_cast<index_t>(values.item_bytes()));
  return bytes;
}

}  // namespace

void read_indexed_tiles(const indexed_leaf& leaf, const std::vector<tensor>& indices,
                        const tensor& out, executor& on) {
  parallel::require_output(out);
  std::vector<parallel::loop_operand> operands{{.values = out, .written = true}};
  for (const tensor& index : indices) operands.push_back({.values = index});
  const parallel::version_bumps bumps(operands);
  auto& count = parallel::state_of(on).count;
  count.pass();
  if (out.size() == 0) return;
  for (const tensor& index : indices) parallel::compare_checksums(index, on);
  const dims to_bytes = stride_bytes(out);
  const reading_plan plan = planner(leaf, indices, to_bytes).plan();
  const index_t points = element_count(plan.points);
  const auto fitting = static_cast<index_t>(on.memory_bytes() / points_in_budget / bytes_per_point);
  const index_t part = std::max(fitting, points_min);
  const std::uint64_t point_bytes =
      static_cast<std::uint64_t>(out.size() / points) * out.item_bytes();
  for (index_t first = 0; first < points; first += std::min(part, points - first)) {
    const index_t end = first + std::min(part, points - first);
    read_part(plan, first, end, static_cast<std::uint64_t>(end - first) * point_bytes, out, on);
  }
  count.read(parallel::bytes_read_once(operands));
  count.written(out.size_bytes());
  parallel::check_storages(operands);
}

tile_amount indexed_tiles_max(const indexed_leaf& leaf, const std::vector<tensor>& indices) {
  const source_leaf& input = std::get<source_leaf>(leaf.input->content);
  const axis_map& map = *leaf.map;
  if (element_count(map.shape) == 0) return {};
  const dims nowhere = dims::filled(map.rank(), 0);
  const reading_plan plan = planner(leaf, indices, nowhere).plan();
  const std::uint64_t tiles = saturating_mul(static_cast<std::uint64_t>(element_count(plan.points)),
                                             static_cast<std::uint64_t>(plan.tiles_of_runs()));
  std::uint64_t elements = tiles;
  for (const index_t extent : input.source->tile_shape())
    elements = saturating_mul(elements, static_cast<std::uint64_t>(extent));
  const tile_amount all = tiles_touched(*input.source, {&*input.map, 1});
  return {std::min(all.tiles, tiles), std::min(all.elements, elements)};
}

}  // namespace shale::ops
