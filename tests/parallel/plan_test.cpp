#include "parallel/plan/plan.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>
#include <vector>

#include "shale/error.hpp"
#include "support/index_oracle.hpp"
#include "support/random_layouts.hpp"

namespace shale::parallel {
namespace {

using test::index_list;
using test::index_oracle;

index_t draw(index_t lowest, index_t highest) { return *rc::gen::inRange(lowest, highest + 1); }

index_list list(const dims& values) { return {values.begin(), values.end()}; }

/// The byte positions of every operand that a loop over the index space touches, sorted.
std::vector<index_list> touched_by_loop(const std::vector<plan_operand>& operands) {
  std::vector<index_list> result;
  for (const auto& operand : operands) {
    const auto positions =
        index_oracle::strided(list(operand.layout.shape()), list(operand.layout.strides()),
                              operand.layout.offset())
            .positions;
    result.resize(positions.size());
    for (std::size_t i = 0; i < positions.size(); ++i)
      result[i].push_back(positions[i] * static_cast<index_t>(operand.item_bytes));
  }
  std::sort(result.begin(), result.end());
  return result;
}

// The base of positions: a number at which no memory lies, with space on both sides.
const auto origin = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 46);

/// The byte positions that the plan's blocks touch, sorted.
std::vector<index_list> touched_by_plan(const plan& over, index_t most_in_block) {
  const std::vector<std::byte*> bases(static_cast<std::size_t>(over.operands()), origin);
  std::vector<index_list> result;
  for (index_t number = 0; number < over.tile_count(); ++number) {
    const auto box = over.tile(number);
    over.for_each_block(
        box, bases,
        [&](std::byte* const* data, const index_t* strides, index_t inner, index_t outer,
            const block_position& position) {
          RC_ASSERT(inner > 0 && outer > 0 && inner * outer <= most_in_block);
          const index_t r = over.rank();
          for (index_t axis = 0; axis < r; ++axis) {
            const index_t extent = axis == r - 1 ? inner : axis == r - 2 ? outer : 1;
            RC_ASSERT(position.start[axis] >= box.start[axis]);
            RC_ASSERT(position.start[axis] + extent <= box.start[axis] + box.shape[axis]);
          }
          const int n = over.operands();
          for (index_t row = 0; row < outer; ++row)
            for (index_t i = 0; i < inner; ++i) {
              index_list element;
              for (int k = 0; k < n; ++k) {
                const index_t at = reinterpret_cast<std::intptr_t>(data[k]) -
                                   reinterpret_cast<std::intptr_t>(origin) + row * strides[n + k] +
                                   i * strides[k];
                const auto [first, last] = over.span_bytes(k, box);
                RC_ASSERT(at >= first && at + static_cast<index_t>(over.item_bytes(k)) <= last);
                element.push_back(at);
              }
              result.push_back(element);
            }
        });
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<plan_operand> random_operands() {
  const dims shape = test::random_shape(draw, {.axes_max = 5, .longest = 7});
  std::vector<plan_operand> operands;
  const index_t count = draw(1, 4);
  for (index_t k = 0; k < count; ++k) {
    auto placed = test::random_layout(draw, shape);
    operands.push_back({placed.geometry, std::size_t{1} << draw(0, 4)});
  }
  return operands;
}

// plan.3
TEST(Plan, BlocksTouchWhatAnIndexByIndexLoopTouches) {
  EXPECT_TRUE(rc::check([] {
    const auto operands = random_operands();
    plan_options options{.tile_elements = draw(0, 3) == 0 ? 0 : draw(1, 60),
                         .block_elements = draw(0, 1) == 0 ? index_t{1} << 62 : draw(1, 50),
                         .keep_axes = draw(0, 3) == 0};
    if (options.keep_axes && draw(0, 1) == 0) {
      dims tile;
      for (index_t axis = 0; axis < operands[0].layout.rank(); ++axis) tile.push_back(draw(1, 4));
      options.tile_shape = tile;
    }
    const plan over(operands, options);
    RC_ASSERT(touched_by_plan(over, options.block_elements) == touched_by_loop(operands));
  }));
}

TEST(Plan, MovesOperandsToMemoryWithOtherStrides) {
  EXPECT_TRUE(rc::check([] {
    auto operands = random_operands();
    const plan_options options{.tile_elements = draw(1, 60),
                               .block_elements = draw(1, 50),
                               .keep_axes = draw(0, 3) == 0,
                               .merge_axes = false};
    plan over(operands, options);
    const index_t moved = draw(0, static_cast<index_t>(operands.size()) - 1);
    layout& place = operands[static_cast<std::size_t>(moved)].layout;
    place = test::random_layout(draw, place.shape()).geometry;
    over.move_operand(static_cast<int>(moved), place);
    RC_ASSERT(touched_by_plan(over, options.block_elements) == touched_by_loop(operands));
  }));
}

// The extents and the first index of every block, in order.
std::vector<index_list> blocks_of(const plan& over) {
  const std::vector<std::byte*> bases(static_cast<std::size_t>(over.operands()), origin);
  std::vector<index_list> result;
  for (index_t number = 0; number < over.tile_count(); ++number)
    over.for_each_block(
        over.tile(number), bases,
        [&](auto&&, auto&&, index_t inner, index_t outer, const block_position& position) {
          result.push_back({inner, outer});
          result.back().insert(result.back().end(), position.start, position.start + over.rank());
        });
  return result;
}

TEST(Plan, HasWholeBlocksAsWithoutALimit) {
  EXPECT_TRUE(rc::check([] {
    auto operands = random_operands();
    if (draw(0, 1)) {
      const layout straight({draw(1, 90), draw(1, 90)});
      const layout turned = layout({straight.shape()[1], straight.shape()[0]}).swapaxes(0, 1);
      operands = {{straight, 4}, {turned, 4}};
    }
    const index_t tile_elements = draw(1, 5000);
    const plan limited(operands, {.tile_elements = tile_elements, .block_elements = draw(1, 50)});
    const plan unlimited(operands, {.tile_elements = tile_elements});
    RC_ASSERT(blocks_of(limited.with_whole_blocks()) == blocks_of(unlimited));
  }));
}

// plan.4
TEST(Plan, TransposedOperandsAreCutIntoSquareBlocks) {
  EXPECT_TRUE(rc::check([] {
    const index_t rows = draw(1, 90), columns = draw(1, 90), depth = draw(1, 3);
    const dims shape{depth, rows, columns};
    const layout straight(shape);
    const layout turned = layout({depth, columns, rows}).swapaxes(1, 2);
    const std::vector<plan_operand> operands{{straight, 4}, {turned, 4}};
    const plan over(operands, {.tile_elements = draw(1, 5000), .block_elements = draw(1, 2000)});
    RC_ASSERT(touched_by_plan(over, index_t{1} << 62) == touched_by_loop(operands));
  }));
  const std::vector<plan_operand> operands{{layout({4096, 4096}), 4},
                                           {layout({4096, 4096}).swapaxes(0, 1), 4}};
  const plan over(operands);
  EXPECT_TRUE(over.has_square_blocks());
  const std::vector<std::byte*> bases(2, origin);
  over.for_each_block(over.tile(3), bases,
                      [](auto*, auto*, index_t inner, index_t outer, const auto&) {
                        EXPECT_EQ(inner, 32);
                        EXPECT_EQ(outer, 32);
                      });
  const plan whole(operands, {.whole_tile_blocks = true});
  EXPECT_EQ(whole.tile_shape(), over.tile_shape());
  whole.for_each_block(whole.tile(3), bases,
                       [&](auto*, auto*, index_t inner, index_t outer, const auto&) {
                         EXPECT_EQ(dims({outer, inner}), over.tile_shape());
                       });
}

TEST(Plan, BlocksNeverExceedTheirLimitHoweverSmall) {
  const std::vector<plan_operand> operands{{layout({100, 100}), 4},
                                           {layout({100, 100}).swapaxes(0, 1), 4}};
  for (const index_t limit : {1, 2, 5, 31, 32, 33, 1000}) {
    const plan over(operands, {.block_elements = limit});
    const std::vector<std::byte*> bases(2, origin);
    for (index_t number = 0; number < over.tile_count(); ++number)
      over.for_each_block(over.tile(number), bases,
                          [&](auto*, auto*, index_t inner, index_t outer, const auto&) {
                            ASSERT_LE(inner * outer, limit);
                          });
  }
}

// plan.3
TEST(Plan, TilesPartitionTheIndexSpace) {
  EXPECT_TRUE(rc::check([] {
    const auto operands = random_operands();
    const plan over(operands, {.tile_elements = draw(1, 60)});
    std::vector<int> covered(static_cast<std::size_t>(over.size()), 0);
    for (index_t number = 0; number < over.tile_count(); ++number) {
      const auto box = over.tile(number);
      test::for_each_index(list(box.shape), [&](const index_list& index) {
        index_t at = 0;
        for (index_t axis = 0; axis < over.rank(); ++axis)
          at = at * over.shape()[axis] + box.start[axis] + index[static_cast<std::size_t>(axis)];
        ++covered[static_cast<std::size_t>(at)];
      });
    }
    RC_ASSERT(std::all_of(covered.begin(), covered.end(), [](int times) { return times == 1; }));
  }));
}

/// The largest number of 64 KiB granules of one operand that a tile touches.
std::size_t granules_at_once(const plan& over, std::size_t which = 0) {
  const std::vector<std::byte*> bases(static_cast<std::size_t>(over.operands()), origin);
  const auto n = static_cast<std::size_t>(over.operands());
  std::size_t most = 0;
  for (index_t number = 0; number < over.tile_count(); ++number) {
    std::set<std::uintptr_t> granules;
    over.for_each_block(
        over.tile(number), bases,
        [&](std::byte* const* data, const index_t* strides, index_t inner, index_t outer,
            const block_position&) {
          for (index_t row = 0; row < outer; ++row)
            for (index_t i = 0; i < inner; ++i)
              granules.insert(reinterpret_cast<std::uintptr_t>(
                                  data[which] + row * strides[n + which] + i * strides[which]) /
                              65536);
        });
    most = std::max(most, granules.size());
  }
  return most;
}

// plan.5
TEST(Plan, TilesTouchLittleMemoryHoweverWideTheirSteps) {
  const auto alone = [](const layout& where, std::size_t item_bytes) {
    return granules_at_once(plan(std::vector<plan_operand>{{where, item_bytes}}));
  };
  constexpr std::size_t reach = 64;  // granules; elements may begin in the middle of one
  const index_t rows = 20000;
  for (const index_t columns : {1, 64, 100, 1000, 1024, 5000, 1 << 20}) {
    SCOPED_TRACE(columns);
    const layout whole({rows, columns});
    EXPECT_LE(alone(whole.narrow(1, 0, 1), 4), reach + 1);
    EXPECT_LE(alone(whole.narrow(1, 0, 1).flip(), 4), reach + 1);
    EXPECT_LE(alone(whole.narrow(1, 0, std::min<index_t>(columns, 3)), 16), 2 * reach);
  }
  EXPECT_LE(alone(layout({200, 300, 1000}).select(2, 5), 8), reach + 1);
  EXPECT_LE(alone(layout({200, 300, 1000}).select(1, 5), 8), 2 * reach);

  // Many operands share the limit of all operands.
  const layout column = layout({rows, 1 << 20}).select(1, 5);
  for (const std::size_t count : {2, 4, 31}) {
    const plan over(std::vector<plan_operand>(count, {column, 4}));
    EXPECT_LE(granules_at_once(over) * count, 4 * reach) << count;
    EXPECT_GE(granules_at_once(over) * (count + 1), std::min(count, std::size_t{4}) * reach - reach)
        << count;
  }

  // Fewer elements on request, as for the starts of long lanes, do not make other axes longer.
  const layout starts = layout({100, 10000, 2}).select(2, 0);
  const layout wide = layout({10000, 25600}).select(1, 0).broadcast_to({100, 10000});
  for (const index_t most : {1, 100, 16384}) {
    const plan over(std::vector<plan_operand>{{starts, 4}, {wide, 4}}, {.elements_max = most});
    EXPECT_LE(element_count(over.tile_shape()), most);
    EXPECT_LE(granules_at_once(over, 1), reach) << most;
  }
}

// plan.5: elements in the same memory count once, in any order of the axes.
TEST(Plan, TilesOverAxesInAnyOrderAreAsLargeAsTheirMemoryAllows) {
  const auto tiles = [](const std::vector<plan_operand>& operands, bool keep_axes) {
    return plan(operands, {.keep_axes = keep_axes}).tile_count();
  };
  for (const index_t columns : {16384, 16400, 32768, 300000}) {  // around 64 KiB of float32 a row
    SCOPED_TRACE(columns);
    const layout turned = layout({128, columns}).permute_dims({1, 0});
    const index_t enough = 4 * ceil_div(columns * 128, index_t{1} << 17);
    EXPECT_LE(tiles({{turned, 4}}, true), enough);
    const layout pairs({columns, 128, 2});
    EXPECT_LE(
        tiles({{pairs, 4}, {turned.expand_dims(2).broadcast_to({columns, 128, 2}), 4}}, false),
        2 * enough);
  }

  // The states of a reduction do not count.
  const auto fold = [&](index_t columns) {
    const layout values = layout({4, columns, 64}).permute_dims({2, 1, 0});
    const layout states = layout({64, columns, 1}).broadcast_to({64, columns, 4});
    return tiles({{values, 4}, {states, 1, operand_role::states}}, false);
  };
  EXPECT_LE(fold(65700), fold(65000) + 20);
}

// Making and merging a state costs more than taking in an element.
TEST(Plan, StatesOfSmallTilesTakeInManyElements) {
  const auto tile_of = [](index_t rows, index_t columns) {
    const layout states = layout({columns}).broadcast_to({rows, columns});
    const plan over(
        std::vector<plan_operand>{{layout({rows, columns}), 4}, {states, 1, operand_role::states}});
    return over.tile_shape();
  };
  for (const index_t rows : {64, 1000, 8192})
    for (const index_t columns : {100, 1024, 8192, 100000})
      EXPECT_GE(tile_of(rows, columns)[0], 60) << rows << " x " << columns;
  // Rows of a tile are not cut into short pieces for that.
  EXPECT_GE(tile_of(16, 100000)[1], 128);
  EXPECT_EQ(tile_of(1 << 20, 8192)[1], 4096);
}

// plan.4, plan.5
TEST(Plan, SquaresTouchLittleMemoryToo) {
  const layout wide = layout({128, 128, 8192}).select(2, 5);
  const plan over(std::vector<plan_operand>{{wide, 4}, {wide.permute_dims({1, 0}), 4}});
  ASSERT_TRUE(over.has_square_blocks());
  const dims tile = over.tile_shape();
  EXPECT_LE(granules_at_once(over, 0), 128u + 16);
  EXPECT_LE(granules_at_once(over, 1), 128u + 16);
  EXPECT_GE(tile[0] * tile[1], 128);
  EXPECT_LE(std::max(tile[0], tile[1]), 2 * std::min(tile[0], tile[1]));
  const plan many(std::vector<plan_operand>{
      {wide, 4}, {wide.permute_dims({1, 0}), 4}, {wide, 4}, {wide, 4}, {wide, 4}, {wide, 4}});
  EXPECT_LE(granules_at_once(many) * 6, 256u + 6 * 8);

  // Along the rows of one operand a step costs little, so these rows are not cut into short pieces.
  const layout turned = layout({100'000, 406}).permute_dims({1, 0});
  const plan narrow(std::vector<plan_operand>{{layout({406, 100'000}), 4}, {turned, 4}});
  EXPECT_EQ(narrow.tile_shape()[1], 256);
  EXPECT_LE(granules_at_once(narrow, 0), 128u + 16);
  EXPECT_GE(narrow.tile_shape()[0], 100);

  // A tile may have fewer elements than a square, as for the starts of long lanes.
  const layout matrix({128, 128});
  const plan lanes(std::vector<plan_operand>{{matrix, 4}, {matrix.permute_dims({1, 0}), 4}},
                   {.elements_max = 2});
  EXPECT_LE(element_count(lanes.tile_shape()), 2);
}

// plan.1
TEST(Plan, MergesOnlyNeighboursThatEveryOperandStepsThroughEvenly) {
  const auto rank = [](std::vector<plan_operand> operands) { return plan(operands).rank(); };
  const layout dense({4, 5, 6});
  EXPECT_EQ(rank({{dense, 4}}), 1);
  EXPECT_EQ(rank({{dense, 4}, {dense, 8}}), 1);
  EXPECT_EQ(rank({{dense, 4}, {layout({4, 5, 7}).narrow(2, 0, 6), 4}}), 2);
  EXPECT_EQ(rank({{dense, 4}, {layout({4, 6, 6}).narrow(1, 0, 5), 4}}), 2);
  EXPECT_EQ(rank({{dense, 4}, {layout({6}).broadcast_to({4, 5, 6}), 4}}), 2);
  EXPECT_EQ(rank({{dense, 4}, {layout().broadcast_to({4, 5, 6}), 4}}), 1);
  EXPECT_EQ(rank({{dense.flip(), 4}, {dense.flip(), 4}}), 1);
  EXPECT_EQ(rank({{dense.flip(), 4}, {dense, 4}}), 1);
  EXPECT_EQ(rank({{dense.flip({1}), 4}, {dense, 4}}), 3);
}

// plan.1
TEST(Plan, SortsAxesByTheFirstOperandsStrides) {
  const layout turned = layout({4, 5, 6}).narrow(2, 0, 4).permute_dims({2, 0, 1});
  const std::vector<plan_operand> operands{{turned, 4}};
  const plan over(operands);
  EXPECT_EQ(over.shape(), (dims{20, 4}));
  EXPECT_EQ(over.strides_bytes(0), (dims{24, 4}));
}

TEST(Plan, WalksForwardsUnlessOperandsDisagree) {
  const std::vector<plan_operand> both{{layout({9}).flip(), 4}, {layout({9}).flip(), 8}};
  EXPECT_EQ(plan(both).strides_bytes(0), dims{4});
  EXPECT_EQ(plan(both).origin_bytes(1), 0);
  const std::vector<plan_operand> opposed{{layout({9}).flip(), 4}, {layout({9}), 8}};
  EXPECT_EQ(plan(opposed).strides_bytes(0), dims{-4});
  EXPECT_EQ(plan(opposed).origin_bytes(0), 32);
}

TEST(Plan, KeepsTheCallersAxesWhenAsked) {
  const std::vector<plan_operand> operands{{layout({3, 1, 4}).flip(), 4}};
  const plan over(operands, {.keep_axes = true});
  EXPECT_EQ(over.shape(), (dims{3, 1, 4}));
  EXPECT_EQ(over.strides_bytes(0), (dims{-16, 0, -4}));
}

TEST(Plan, RankZeroIsOneTileAndEmptyIsNone) {
  const std::vector<plan_operand> point{{layout(), 8}};
  EXPECT_EQ(plan(point).tile_count(), 1);
  EXPECT_EQ(plan(point).size(), 1);
  for (const dims& shape : {dims{0}, dims{3, 0, 4}, dims{0, 0}}) {
    const std::vector<plan_operand> nothing{{layout(shape), 8}};
    EXPECT_EQ(plan(nothing).tile_count(), 0);
    EXPECT_EQ(plan(nothing, {.keep_axes = true}).tile_count(), 0);
  }
}

TEST(Plan, RefusesOperandsThatDiffer) {
  const std::vector<plan_operand> operands{{layout({3}), 4}, {layout({4}), 4}};
  EXPECT_THROW(plan(std::span(operands)), error);
  EXPECT_THROW(plan(std::span(operands).first(0)), error);
  const std::vector<plan_operand> many(65, {layout({3}), 4});
  EXPECT_THROW(plan(std::span(many)), error);
}

}  // namespace
}  // namespace shale::parallel
