// Tests which units of a dense array a view touches, and which extents are cheapest to join.
#include "array/elements/copied_units.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "format/bytes/file_layout.hpp"

namespace shale::arrays {
namespace {

using format::byte_interval;

constexpr std::size_t wide = 16;  // bytes of an element
constexpr auto items_in_unit = static_cast<index_t>(unit_bytes / wide);

// The positions of all elements, one by one.
void visit(const layout& view, index_t axis, index_t position, std::vector<index_t>& positions) {
  if (axis == view.rank()) return positions.push_back(position);
  for (index_t i = 0; i < view.shape()[axis]; ++i)
    visit(view, axis + 1, position + i * view.strides()[axis], positions);
}

TEST(TouchedUnits, ReachFromTheFirstElementToTheLast) {
  std::mt19937 random(1);
  const auto below = [&](index_t n) { return static_cast<index_t>(random() % n); };
  const dims shapes[] = {
      {20 * items_in_unit / 3}, {6, items_in_unit + 7}, {700, 1000}, {9, 83, 1001}};
  for (int round = 0; round < 200; ++round) {
    const dims& shape = shapes[round % 4];
    layout view(shape);
    for (index_t axis = 0; axis < shape.size(); ++axis) {
      const index_t start = below(shape[axis]);
      view = view.sliced(axis, {.start = start,
                                .stop = start + below(shape[axis] - start) + 1,
                                .step = 1 + below(shape[axis] / 8 + 1)});
      if (below(4) == 0) view = view.flip({axis});
    }
    if (shape.size() > 1 && below(3) == 0) view = view.swapaxes(0, shape.size() - 1);
    const auto array_bytes = static_cast<std::uint64_t>(element_count(shape)) * wide;
    std::vector<index_t> positions;
    visit(view, 0, view.offset(), positions);
    const auto [first, last] = std::minmax_element(positions.begin(), positions.end());
    const byte_interval units = touched_units(view, wide, array_bytes);
    ASSERT_EQ(units.first, static_cast<std::uint64_t>(*first / items_in_unit) * unit_bytes);
    ASSERT_EQ(units.end,
              std::min((static_cast<std::uint64_t>(*last / items_in_unit) + 1) * unit_bytes,
                       array_bytes));
  }
}

TEST(TouchedUnits, OfAnEmptyViewAreNone) {
  const byte_interval none = touched_units(layout({1 << 20, 8}).narrow(0, 5, 0), 8, 64u << 20);
  EXPECT_EQ(none.first, none.end);
}

TEST(TouchedUnits, OfABroadcastViewAreThoseOfOneElement) {
  const layout view = layout({1 << 20}).narrow(0, 1 << 19, 1).broadcast_to({1000});
  const byte_interval one = touched_units(view, 8, 8u << 20);
  EXPECT_EQ(one.first, 2 * unit_bytes);
  EXPECT_EQ(one.end, 3 * unit_bytes);
}

TEST(CheapestRun, HasTheFewestBytes) {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    format::dense_layout made;
    std::uint64_t bytes = 0;
    const std::size_t extents = 4 + random() % 30;
    for (std::size_t i = 0; i < extents; ++i) {
      made.extents.push_back({(i + 1) * 1000 * unit_bytes, (1 + random() % 20) * unit_bytes});
      bytes += made.extents.back().bytes;
    }
    const std::size_t count = 2 + random() % (extents - 2);
    std::uint64_t least = UINT64_MAX;
    for (std::size_t i = 0; i + count <= extents; ++i) {
      std::uint64_t sum = 0;
      for (std::size_t k = i; k < i + count; ++k) sum += made.extents[k].bytes;
      least = std::min(least, sum);
    }
    const byte_interval run = cheapest_run(made, bytes, count);
    EXPECT_EQ(run.end - run.first, least) << round;
  }
}

TEST(CanBeCut, AsksForWholeUnitsBeforeTheLastExtent) {
  format::dense_layout made;
  made.extents = {{100 * unit_bytes, 3 * unit_bytes}, {200 * unit_bytes, 4711}};
  EXPECT_TRUE(can_be_cut(made));
  made.extents.front().bytes += format::page_bytes;
  EXPECT_FALSE(can_be_cut(made));
}

}  // namespace
}  // namespace shale::arrays
