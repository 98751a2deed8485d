// Tests the counts of tiles. The oracle visits every element of every view.
#include "ops/passes/tiles_touched.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "shale/tile_source.hpp"
#include "support/random_tensors.hpp"
#include "support/unread_source.hpp"

namespace shale {
namespace {

using ops::tile_amount;
using ops::tiles_touched;
using parallel::axis_map;
using test::index_list;
using test::random_choices;
using test::unread_source;

// The elements of all tiles that hold an element of at least one view.
tile_amount walked(const tile_source& source, const std::vector<axis_map>& views) {
  std::set<index_list> tiles;
  for (const axis_map& view : views) {
    if (element_count(view.shape) == 0) continue;
    dims index = dims::filled(view.rank(), 0);
    for (bool more = true; more;) {
      dims position = view.base;
      for (index_t axis = 0; axis < view.rank(); ++axis)
        if (view.from[axis] >= 0) position[view.from[axis]] += view.step[axis] * index[axis];
      index_list tile;
      for (index_t axis = 0; axis < position.size(); ++axis)
        tile.push_back(position[axis] / source.tile_shape()[axis]);
      tiles.insert(tile);
      more = false;
      for (index_t axis = view.rank() - 1; axis >= 0 && !more; --axis) {
        more = ++index[axis] < view.shape[axis];
        if (!more) index[axis] = 0;
      }
    }
  }
  tile_amount result;
  for (const index_list& tile : tiles) {
    std::uint64_t elements = 1;
    for (index_t axis = 0; axis < source.shape().size(); ++axis) {
      const index_t extent = source.tile_shape()[axis];
      const index_t start = tile[static_cast<std::size_t>(axis)] * extent;
      elements *= static_cast<std::uint64_t>(std::min(extent, source.shape()[axis] - start));
    }
    ++result.tiles;
    result.elements += elements;
  }
  return result;
}

axis_map random_view(random_choices& choose, const dims& shape) {
  axis_map view = axis_map::identity(shape);
  for (index_t steps = choose(0, 5); steps > 0; --steps) {
    if (view.rank() == 0) return view.expand_dims(0).broadcast_to({3});
    const index_t axis = choose(0, view.rank() - 1);
    const index_t extent = view.shape[axis];
    switch (choose(0, 5)) {
      case 0:
        view = view.sliced(axis, {.start = choose(0, extent), .step = choose(1, 9)});
        break;
      case 1:
        view = view.sliced(axis, {.step = -choose(1, 9)});
        break;
      case 2:
        if (extent > 0) view = view.select(axis, choose(0, extent - 1));
        break;
      case 3:
        view = view.expand_dims(axis).broadcast_to([&] {
          dims wider = view.expand_dims(axis).shape;
          wider[axis] = choose(1, 3);
          return wider;
        }());
        break;
      case 4:
        view = view.flip({axis});
        break;
      default:
        view = view.narrow(axis, extent / 3, extent - extent / 3 - extent / 4);
    }
  }
  return view;
}

TEST(TilesTouched, AreTheTilesWithAnElementOfAView) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    random_choices choose(seed);
    dims shape, tile_shape;
    for (index_t axis = choose(0, 3); axis > 0; --axis) {
      shape.push_back(choose(1, 25));
      tile_shape.push_back(choose(1, 9));
    }
    const unread_source source(shape, tile_shape);
    std::vector<axis_map> views;
    for (index_t count = choose(1, 4); count > 0; --count)
      views.push_back(random_view(choose, shape));
    const tile_amount got = tiles_touched(source, views), wanted = walked(source, views);
    EXPECT_EQ(got.tiles, wanted.tiles);
    EXPECT_EQ(got.elements, wanted.elements);
  }
}

TEST(TilesTouched, OfHugeSourcesAreCountedAtOnce) {
  const unread_source source({index_t{1} << 60}, {1 << 10});
  const axis_map all = axis_map::identity(source.shape());
  const auto tiles = [&](const std::vector<axis_map>& views) {
    return tiles_touched(source, views).tiles;
  };
  EXPECT_EQ(tiles({all}), std::uint64_t{1} << 50);
  EXPECT_EQ(tiles({all.sliced(0, {.step = 1 << 20})}), std::uint64_t{1} << 40);
  EXPECT_EQ(tiles({all.narrow(0, 1000, 30), all.narrow(0, 1020, 30)}), 2u);
  // Each view counts its tiles on its own.
  EXPECT_EQ(tiles({all, all.flip({0})}), std::uint64_t{2} << 50);
}

// The end of the last tile is beyond the largest index.
TEST(TilesTouched, MayEndBeyondEveryIndex) {
  constexpr index_t half = index_t{1} << 62;
  const unread_source source({half + 1}, {half});
  const axis_map all = axis_map::identity(source.shape());
  const std::vector<axis_map> whole{all}, last{all.narrow(0, half, 1)};
  EXPECT_EQ(tiles_touched(source, whole).tiles, 2u);
  EXPECT_EQ(tiles_touched(source, whole).elements, static_cast<std::uint64_t>(half) + 1);
  EXPECT_EQ(tiles_touched(source, last).tiles, 1u);
  EXPECT_EQ(tiles_touched(source, last).elements, 1u);
}

}  // namespace
}  // namespace shale
