// Tests how the grids of tile sources and sinks cut a pass into units. The expected shapes are
// computed by hand. Passes over files alone are in pass_loop_test.cpp.
#include "parallel/ways/way.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "parallel/ways/joined_units.hpp"
#include "shale/mapped_file.hpp"
#include "support/scratch_directory.hpp"
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

// ---- whole units --------------------------------------------------------------------------------

// The shape of whole units over `shape`, with a halo, for any budget. All elements are one.
dims whole_units(const dims& shape, const operand_halo& halo = {}) {
  const executor large({.threads = 1, .memory_bytes = std::size_t{1} << 30});
  const executor small({.threads = 3, .memory_bytes = 1 << 10});
  const layout repeated(shape, dims::filled(shape.size(), 0), 0);
  std::vector<loop_operand> operands{
      {.values = tensor(storage::allocate(16), dtype::int8, repeated)}};
  if (!halo.before.empty()) operands[0].halo = &halo;
  const pass_options options{.coordinates = true, .unit_shape = dims()};
  const dims got = choose_way(operands, options, large).units.tile_shape();
  EXPECT_EQ(choose_way(operands, options, small).units.tile_shape(), got) << "way.2";
  return got;
}

// way.2
TEST(Way, WholeUnitsAreLongRowsThatAreWideBesideTheirHalos) {
  EXPECT_EQ(whole_units({100'000, 100'000}), dims({256, 4000}));
  EXPECT_EQ(whole_units({1 << 30}), dims({1 << 20}));
  EXPECT_EQ(whole_units({1000, 30}), dims({1000, 30})) << "at least 2^15 elements";
  EXPECT_EQ(whole_units({}), dims({1}));
  EXPECT_EQ(whole_units({0, 5}), dims({1, 5}));
  const operand_halo one{.before = {1, 1, 1}, .after = {1, 1, 1}};
  EXPECT_EQ(whole_units({1024, 1024, 1024}, one), dims({32, 32, 1024}));
  const operand_halo wide{.before = {10, 10, 10}, .after = {10, 10, 10}};
  EXPECT_EQ(whole_units({1000, 1000, 1000}, wide), dims({77, 77, 143}));
  const operand_halo endless{.before = {index_t{1} << 59}, .after = {index_t{1} << 59}};
  EXPECT_EQ(whole_units({1 << 30}, endless), dims({1 << 20}));
}

TEST(Way, WholeUnitsOfGridsAreWideBesideTheirHalos) {
  const unread_source source({500, 500}, {10, 100});
  const tiled_elements tiles{&source, axis_map::identity(source.shape())};
  std::vector<loop_operand> operands{tiled_operand(tiles, source.shape())};
  const executor on({.threads = 1});
  const auto units = [&](const dims& wanted) {
    return choose_way(operands, {.coordinates = true, .unit_shape = wanted}, on).units.tile_shape();
  };
  EXPECT_EQ(units({}), dims({10, 100}));
  EXPECT_EQ(units({20, 35}), dims({20, 35}));
  const operand_halo halo{.before = {4, 4}, .after = {4, 4}};
  operands[0].halo = &halo;
  EXPECT_EQ(units({}), dims({40, 100})) << "four times 8";
}

// Otherwise pages of a halo would be read where their window has been dropped.
TEST(Way, MappedOperandsWithHalosAreCopiedTogether) {
  const test::scratch_directory directory;
  const dims shape{64, 64};
  const tensor file(create_file(directory / "large", 64 * 64), dtype::int8, layout(shape));
  const tensor row(create_file(directory / "small", 64), dtype::int8, layout({64}));
  const operand_halo halo{.before = {1, 1}, .after = {1, 1}};
  const std::vector<loop_operand> operands{
      {.values = tensor::zeros(shape, dtype::int8), .written = true},
      {.values = file},
      {.values = row.broadcast_to(shape)},
      {.values = row.broadcast_to(shape), .halo = &halo}};
  const pass_options options{.coordinates = true, .unit_shape = dims{8, 8}};
  using enum operand_access;
  const executor little({.threads = 1, .memory_bytes = 4096});
  EXPECT_EQ(choose_way(operands, options, little).accesses,
            (std::vector{in_place, copied, in_place, copied}));
  const executor much({.threads = 1, .memory_bytes = 1 << 20});
  EXPECT_EQ(choose_way(operands, options, much).accesses,
            (std::vector{in_place, in_place, in_place, in_place}));
}

// ---- units that are joined ----------------------------------------------------------------------

constexpr std::size_t mib = std::size_t{1} << 20;

// The shape of the units that copy rows, tiles of 1 MiB, to columns.
dims units_from_rows_to_columns(const executor& on, const pass_options& options = {}) {
  const dims shape{16'384, 16'384};
  const unread_source rows(shape, {64, 16'384});
  unread_source columns(shape, {16'384, 64});
  const tiled_elements input{&rows, axis_map::identity(shape)}, output{nullptr, {}, &columns};
  const std::vector<loop_operand> operands{tiled_operand(input, shape),
                                           tiled_operand(output, shape)};
  return choose_way(operands, options, on).units.tile_shape();
}

// A column needs all 256 rows. A quarter of 256 MiB holds 64 of them.
TEST(Way, UnitsThatCutMoreTilesThanTheCacheHoldsAreJoined) {
  const executor four({.threads = 4, .memory_bytes = 256 * mib});
  EXPECT_EQ(units_from_rows_to_columns(four), dims({16'384, 16 * 64})) << "2 x 16 MiB, four times";
  const executor one({.threads = 1, .memory_bytes = 256 * mib});
  EXPECT_EQ(units_from_rows_to_columns(one), dims({16'384, 64 * 64})) << "2 x 64 MiB";
  const executor little({.threads = 4, .memory_bytes = 8 * mib});
  EXPECT_EQ(units_from_rows_to_columns(little), dims({16'384, 64})) << "two do not fit";
  const executor large({.threads = 4, .memory_bytes = 1024 * mib});
  EXPECT_EQ(units_from_rows_to_columns(large), dims({16'384, 64})) << "the cache holds all rows";
}

// way.1
TEST(Way, FixedUnitsAreNotJoined) {
  const executor four({.threads = 4, .memory_bytes = 256 * mib});
  EXPECT_EQ(units_from_rows_to_columns(four, {.fixed_units = true}), dims({16'384, 64}));
}

// A private mapping is never copied: it is streamed, and a window has at least one unit.
TEST(Way, UnitsAreJoinedAsFarAsWindowsFit) {
  const dims shape{256, 256};
  const unread_source rows(shape, {1, 256});
  unread_source columns(shape, {256, 1});
  const tiled_elements input{&rows, axis_map::identity(shape)}, output{nullptr, {}, &columns};
  std::vector<loop_operand> operands{tiled_operand(input, shape), tiled_operand(output, shape)};
  const executor four({.threads = 4, .memory_bytes = 64 << 10});
  EXPECT_EQ(choose_way(operands, {}, four).units.tile_shape(), dims({256, 16}));
  const test::scratch_directory directory;
  const std::string path = directory / "numbers";
  const storage whole = create_file(path, 256 * 256 * sizeof(double));
  const storage own = map_file(path, {.access = access::copy_on_write});
  operands.push_back({tensor(own, dtype::float64, layout(shape)), false});
  EXPECT_EQ(choose_way(operands, {}, four).units.tile_shape(), dims({256, 3}))
      << "ten bytes for each element, not two";
}

TEST(JoinedUnits, GrowAlongAxesAlongWhichTilesAreCut) {
  const std::vector<source_tiles> rows{{{1, 1, 100}, 100}};
  EXPECT_EQ(joined_units({50, 10, 1}, {50, 10, 100}, rows, {.elements_max = 7 * 500}),
            dims({50, 10, 7}));
  EXPECT_EQ(joined_units({50, 10, 1}, {50, 10, 100}, rows, {.elements_max = 1 << 20}),
            dims({50, 10, 100}));
  // The tiles of 50 x 10 rows have 50,000 bytes.
  EXPECT_EQ(joined_units({50, 10, 1}, {50, 10, 100}, rows,
                         {.cache_bytes = 50'000, .elements_max = 1 << 20}),
            dims({50, 10, 1}));
  EXPECT_EQ(joined_units({1, 1, 100}, {50, 10, 100}, rows, {.elements_max = 1 << 20}),
            dims({1, 1, 100}))
      << "a unit of one tile";
}

// A source that is not indexed along an axis has one tile there.
TEST(JoinedUnits, GrowAlongSeveralAxes) {
  const std::vector<source_tiles> squares{{{0, 8, 8}, 64}};
  EXPECT_EQ(joined_units({2, 1, 4}, {2, 16, 16}, squares, {.elements_max = 1 << 20}),
            dims({2, 8, 8}));
  EXPECT_EQ(joined_units({2, 1, 4}, {2, 16, 16}, squares, {.elements_max = 40}), dims({2, 5, 4}));
}

TEST(JoinedUnits, StayInsideTheShape) {
  const std::vector<source_tiles> rows{{{1, 10}, 10}};
  EXPECT_EQ(joined_units({7, 4}, {7, 10}, rows, {.elements_max = 1 << 20}), dims({7, 10}));
}

}  // namespace
}  // namespace shale::parallel
