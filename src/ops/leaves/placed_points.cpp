#include "ops/leaves/placed_points.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/grid.hpp"
#include "ops/leaves/indices.hpp"

namespace shale::ops {

namespace {

using namespace detail;

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

}  // namespace

void find_points(const reading_plan& plan, index_t first, index_t count, placed_point* found) {
  point_finder(plan).find(first, count, found);
}

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

}  // namespace shale::ops
