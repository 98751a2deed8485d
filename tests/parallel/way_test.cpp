// Tests how the grids of tile sources and sinks cut a pass into units. The expected shapes are
// computed by hand. Files are in pass_loop_test.cpp.
#include "parallel/ways/way.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "support/unread_source.hpp"

namespace shale::parallel {
namespace {

using test::unread_source;

constexpr index_t huge = index_t{1} << 62;

// The shape of the units of a pass over `shape`, for any budget.
dims units_over(const dims& shape, const std::vector<tiled_elements>& operands) {
  std::vector<loop_operand> prepared;
  for (const tiled_elements& each : operands) prepared.push_back(tiled_operand(each, shape));
  const pass_options options{.fixed_units = true};
  const executor large({.threads = 1, .memory_bytes = std::size_t{1} << 30});
  const executor small({.threads = 3, .memory_bytes = 1 << 16});
  const dims got = choose_way(prepared, options, large).units.tile_shape();
  EXPECT_EQ(choose_way(prepared, options, small).units.tile_shape(), got) << "way.1";
  return got;
}

// A source of rank 1 that is indexed along `axis` of a pass over `shape`.
tiled_elements along(index_t axis, const dims& shape, const unread_source& source) {
  axis_map seen = axis_map::identity(source.shape());
  for (index_t before = 0; before < axis; ++before) seen = seen.expand_dims(0);
  while (seen.rank() < shape.size()) seen = seen.expand_dims(seen.rank());
  return {&source, seen.broadcast_to(shape)};
}

TEST(Way, UnitsAreTheTilesOfASource) {
  const unread_source source({5000, 4000}, {300, 200}), large({1 << 25}, {1 << 24});
  EXPECT_EQ(units_over({5000, 4000}, {{&source, axis_map::identity({5000, 4000})}}),
            dims({300, 200}));
  EXPECT_EQ(units_over({1 << 25}, {{&large, axis_map::identity({1 << 25})}}), dims{1 << 24});
}

// Otherwise two small sources would make a unit that one thread works on without an end.
TEST(Way, SourcesAlongDifferentAxesShareUnitsOfAMillionElements) {
  const unread_source few({100}, {100}), some({20'000}, {20'000}), many({1 << 25}, {1 << 24});
  const auto pair = [](const unread_source& first, const unread_source& second) {
    const dims shape{first.shape()[0], second.shape()[0]};
    const tiled_elements rows = along(0, shape, first), columns = along(1, shape, second);
    const dims units = units_over(shape, {rows, columns});
    EXPECT_EQ(units_over(shape, {columns, rows}), units);
    return units;
  };
  EXPECT_EQ(pair(few, some), dims({52, 20'000}));  // 2^20 / 20,000 = 52.4
  EXPECT_EQ(pair(some, few), dims({10'485, 100}));
  EXPECT_EQ(pair(some, some), dims({52, 20'000}));
  EXPECT_EQ(pair(few, few), dims({100, 100}));
  EXPECT_EQ(pair(some, many), dims({1, 1 << 24})) << "a tile is decoded as a whole";
  EXPECT_EQ(pair(many, some), dims({838, 20'000}));  // 2^24 / 20,000 = 838.9
}

// Axes along which no source is indexed are cut first.
TEST(Way, BroadcastAxesAreCutBeforeTiles) {
  const unread_source some({1000}, {1000});
  const dims shape{1000, 1'000'000, 1000};
  EXPECT_EQ(units_over(shape, {along(2, shape, some)}), dims({1, 1048, 1000}));
  EXPECT_EQ(units_over(shape, {along(0, shape, some), along(2, shape, some)}),
            dims({1000, 1, 1000}));
}

// Extents count as far as they lie in the index space, so their product does not overflow.
TEST(Way, TilesMayBeLargerThanTheIndexSpace) {
  unread_source source({10, 12}, {huge, huge});
  const axis_map seen = axis_map::identity({10, 12});
  EXPECT_EQ(units_over({10, 12}, {{&source, seen}}), dims({10, 12}));
  EXPECT_EQ(units_over({10, 12}, {{nullptr, {}, &source}}), dims({10, 12}));
  const dims repeated{1 << 15, 10, 12};
  EXPECT_EQ(units_over(repeated, {{&source, seen.expand_dims(0).broadcast_to(repeated)}}),
            dims({8738, 10, 12}));  // 2^20 / 120 = 8738.1
}

TEST(Way, IndexSpacesMayBeLargerThanMemory) {
  const unread_source rows({index_t{1} << 31}, {huge}), columns({index_t{1} << 31}, {huge});
  const dims shape{index_t{1} << 31, index_t{1} << 31};
  EXPECT_EQ(units_over(shape, {along(0, shape, rows), along(1, shape, columns)}),
            dims({1, index_t{1} << 31}));
}

}  // namespace
}  // namespace shale::parallel
