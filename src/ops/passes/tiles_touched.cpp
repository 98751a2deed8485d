#include "ops/passes/tiles_touched.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "core/saturating.hpp"
#include "shale/tile_source.hpp"

namespace shale::ops {

namespace {

// The tiles that one view touches form a grid: some tile positions along each axis, and every
// combination of them. The union of several grids is not a grid, so the tiles of several views
// cannot be counted axis by axis directly. Instead each tile position along an axis gets the set of
// views that touch it there. A tile is touched by exactly the views that are in the sets of all its
// positions. `counter` counts the positions with equal sets together. It then combines the axes: it
// intersects the sets and multiplies the counts. So the work grows with the number of positions
// along each axis and of different sets, and not with the number of tiles.

// A set of views: bit k stands for view k.
using view_set = std::uint64_t;

// The number of tiles that exactly these views touch, for each set of views.
using amount_by_views = std::map<view_set, tile_amount>;

// The tiles along one axis that one view touches. If the view's step is at most the extent of a
// tile, these are all tiles from the first to the last. Otherwise each position lies in a tile of
// its own.
class tiles_of_view {
 public:
  tiles_of_view(const axis_map& view, index_t axis, index_t extent) : extent_(extent) {
    first_ = view.base[axis];
    for (index_t walker = 0; walker < view.rank(); ++walker) {
      if (view.from[walker] != axis || view.shape[walker] < 2) continue;
      steps_ = view.shape[walker] - 1;
      step_ = std::abs(view.step[walker]);
      if (view.step[walker] < 0) first_ -= steps_ * step_;
    }
  }

  std::uint64_t count() const {
    return static_cast<std::uint64_t>(step_ > extent_ ? steps_ : last() - first_ / extent_) + 1;
  }
  index_t last() const { return (first_ + steps_ * step_) / extent_; }

  template <class Visit>
  void for_each(Visit visit) const {
    if (step_ <= extent_)
      for (index_t tile = first_ / extent_; tile <= last(); ++tile) visit(tile);
    else
      for (index_t k = 0; k <= steps_; ++k) visit((first_ + k * step_) / extent_);
  }

 private:
  index_t extent_;
  index_t first_ = 0;  // the lowest position
  index_t step_ = 1;
  index_t steps_ = 0;
};

// Saturates, because several views of a source together may have more elements than 64 bits can
// count.
void add(tile_amount& to, const tile_amount& more) {
  detail::add_saturating(to.tiles, more.tiles);
  detail::add_saturating(to.elements, more.elements);
}

bool is_empty(const axis_map& view) {
  return std::any_of(view.shape.begin(), view.shape.end(), [](index_t n) { return n == 0; });
}

class counter {
 public:
  counter(const tile_source& source, std::span<const axis_map> views)
      : source_(source), views_(views) {}

  bool has_many() const {
    constexpr std::uint64_t most = std::uint64_t{1} << 20;
    for (index_t axis = 0; axis < source_.shape().size(); ++axis)
      for (const axis_map& view : views_)
        if (tiles(view, axis).count() > most) return true;
    return false;
  }

  // Counts the tiles that at least one view touches.
  tile_amount together() const {
    const view_set all = views_.size() == 64 ? ~view_set{0} : (view_set{1} << views_.size()) - 1;
    amount_by_views inner{{all, {1, 1}}};
    for (index_t axis = 0; axis < source_.shape().size(); ++axis) {
      amount_by_views outer;
      for (const auto& [here, along] : along_axis(axis)) {
        for (const auto& [there, across] : inner) {
          if ((here & there) == 0) continue;
          tile_amount& both = outer[here & there];
          add(both, {detail::saturating_mul(along.tiles, across.tiles),
                     detail::saturating_mul(along.elements, across.elements)});
        }
      }
      inner = std::move(outer);
    }
    tile_amount sum;
    for (const auto& [views, amount] : inner) add(sum, amount);
    return sum;
  }

 private:
  tiles_of_view tiles(const axis_map& view, index_t axis) const {
    return {view, axis, source_.tile_shape()[axis]};
  }

  // The number of positions along the axis in `count` tiles, the last of which is tile `last`. The
  // tile at the edge may be cut.
  std::uint64_t positions(index_t axis, std::uint64_t count, index_t last) const {
    const index_t extent = source_.tile_shape()[axis];
    const index_t in_last = std::min(extent, source_.shape()[axis] - last * extent);
    return (count - 1) * static_cast<std::uint64_t>(extent) + static_cast<std::uint64_t>(in_last);
  }

  amount_by_views along_axis(index_t axis) const {
    if (views_.size() == 1) {
      const tiles_of_view only = tiles(views_.front(), axis);
      return {{1, {only.count(), positions(axis, only.count(), only.last())}}};
    }
    std::map<index_t, view_set> by_tile;
    for (std::size_t k = 0; k < views_.size(); ++k)
      tiles(views_[k], axis).for_each([&](index_t tile) { by_tile[tile] |= view_set{1} << k; });
    amount_by_views result;
    for (const auto& [tile, views] : by_tile) add(result[views], {1, positions(axis, 1, tile)});
    return result;
  }

  const tile_source& source_;
  std::span<const axis_map> views_;
};

}  // namespace

tile_amount tiles_touched(const tile_source& source, std::span<const axis_map> views) {
  std::vector<axis_map> reading;
  std::copy_if(views.begin(), views.end(), std::back_inserter(reading),
               [](const axis_map& view) { return !is_empty(view); });
  if (reading.empty()) return {};
  const counter all(source, reading);
  if (reading.size() == 1 || !all.has_many()) return all.together();
  tile_amount sum;
  for (const axis_map& view : reading) add(sum, counter(source, {&view, 1}).together());
  return sum;
}

}  // namespace shale::ops
