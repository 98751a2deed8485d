#include "ops/leaves/indexed_tiles.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/grid.hpp"
#include "core/saturating.hpp"
#include "ops/leaves/placed_points.hpp"
#include "ops/leaves/reading_plan.hpp"
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
  parallel::parallel_for_tiles(on, ceil_div(end - first, block_points),
                               [&](index_t block, int) {
                                 const index_t begin = first + block * block_points;
                                 find_points(plan, begin, std::min(block_points, end - begin),
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
  const reading_plan plan = plan_reading(leaf, indices, to_bytes);
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
  const reading_plan plan = plan_reading(leaf, indices, nowhere);
  const std::uint64_t tiles = saturating_mul(static_cast<std::uint64_t>(element_count(plan.points)),
                                             static_cast<std::uint64_t>(plan.tiles_of_runs()));
  std::uint64_t elements = tiles;
  for (const index_t extent : input.source->tile_shape())
    elements = saturating_mul(elements, static_cast<std::uint64_t>(extent));
  const tile_amount all = tiles_touched(*input.source, {&*input.map, 1});
  return {std::min(all.tiles, tiles), std::min(all.elements, elements)};
}

}  // namespace shale::ops
