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
    const byte_interval units = touched_units(view, wide, array_bytes, 0);
    ASSERT_EQ(units.first, static_cast<std::uint64_t>(*first / items_in_unit) * unit_bytes);
    ASSERT_EQ(units.end,
              std::min((static_cast<std::uint64_t>(*last / items_in_unit) + 1) * unit_bytes,
                       array_bytes));
  }
}

TEST(TouchedUnits, OfAnEmptyViewAreNone) {
  const byte_interval none = touched_units(layout({1 << 20, 8}).narrow(0, 5, 0), 8, 64u << 20, 0);
  EXPECT_EQ(none.first, none.end);
}

TEST(TouchedUnits, OfABroadcastViewAreThoseOfOneElement) {
  const layout view = layout({1 << 20}).narrow(0, 1 << 19, 1).broadcast_to({1000});
  const byte_interval one = touched_units(view, 8, 8u << 20, 0);
  EXPECT_EQ(one.first, 2 * unit_bytes);
  EXPECT_EQ(one.end, 3 * unit_bytes);
}

TEST(TouchedUnits, BeginWhereAUnitIsDivided) {
  const layout whole({1 << 20});  // of 8 bytes each
  constexpr std::uint64_t bytes = 8u << 20, divided_at = 3 * unit_bytes + 3 * division_bytes;
  const auto touched = [&](index_t first, index_t count) {
    return touched_units(whole.narrow(0, first, count), 8, bytes, divided_at);
  };
  constexpr index_t here = divided_at / 8;
  EXPECT_EQ(touched(here, 1).first, divided_at);
  EXPECT_EQ(touched(here + 1, 5).first, divided_at);
  EXPECT_EQ(touched(here + 1, 5).end, bytes);
  EXPECT_EQ(touched(here - 1, 5).first, 3 * unit_bytes);
  EXPECT_EQ(touched(0, 1).first, 0u);
}

// Every append of a row copies what its extent has no room for.
TEST(KeptByAppend, CopiesLittleAndLeavesFewExtents) {
  for (const std::uint64_t row : {4096u, 12'000u, 100'000u, 700'000u}) {
    format::dense_layout made;
    std::uint64_t bytes = 0, copied = 0, place = 1000 * unit_bytes;
    std::size_t most = 0;
    for (std::uint64_t after = row; after < 8 * unit_bytes; after += row) {
      const std::uint64_t kept = kept_by_append(made, bytes, after);
      ASSERT_LE(kept, bytes);
      ASSERT_EQ(kept % division_bytes, 0u);
      copied += bytes - kept;
      made.extents = dense_places(made.extents).pieces(0, kept);
      made.extents.push_back({place, after - kept});
      place += unit_bytes * 10;
      bytes = after;
      ASSERT_TRUE(can_be_cut(made, bytes));
      most = std::max(most, made.extents.size() - bytes / unit_bytes);
    }
    EXPECT_LE(most, 7u) << row;
    // A unit is copied once when it is full; before that, each byte a few times.
    EXPECT_LE(copied, 8 * unit_bytes + bytes / row * 2 * division_bytes + 5 * bytes) << row;
  }
}

TEST(CutAtUnits, LeavesWholeUnitsInLargeParts) {
  constexpr std::uint64_t bytes = 40 * unit_bytes + 4711, some = 3 * division_bytes;
  const auto cut = [](std::uint64_t first, std::uint64_t end) {
    std::vector<std::uint64_t> bounds;
    for (const byte_interval& part : cut_at_units({{first, end}}, bytes)) {
      EXPECT_TRUE(bounds.empty() || bounds.back() == part.first);
      if (bounds.empty()) bounds.push_back(part.first);
      bounds.push_back(part.end);
    }
    return bounds;
  };
  using bounds = std::vector<std::uint64_t>;
  EXPECT_EQ(cut(0, 8 * unit_bytes + some), (bounds{0, 8 * unit_bytes, 8 * unit_bytes + some}));
  EXPECT_EQ(cut(some, 12 * unit_bytes + some),
            (bounds{some, unit_bytes, 12 * unit_bytes, 12 * unit_bytes + some}));
  EXPECT_EQ(cut(some, bytes), (bounds{some, unit_bytes, bytes}));
  EXPECT_EQ(cut(0, bytes), (bounds{0, bytes}));
  EXPECT_EQ(cut(some, 7 * unit_bytes), (bounds{some, 7 * unit_bytes}));
  EXPECT_EQ(cut(unit_bytes, 20 * unit_bytes), (bounds{unit_bytes, 20 * unit_bytes}));
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

// An extent of more than one unit that is not the last one has to hold whole units.
TEST(CheapestRun, EndsWithAUnit) {
  format::dense_layout made;
  made.extents = {{100 * unit_bytes, 2 * unit_bytes},
                  {200 * unit_bytes, unit_bytes},
                  {300 * unit_bytes, division_bytes},
                  {400 * unit_bytes, 4711}};
  const std::uint64_t bytes = 3 * unit_bytes + division_bytes + 4711;
  EXPECT_EQ(cheapest_run(made, bytes, 2).first, 3 * unit_bytes);
  EXPECT_EQ(cheapest_run(made, bytes, 3).first, 2 * unit_bytes);
  // The cheapest run would end inside the last unit.
  made.extents = {{100 * unit_bytes, 2 * unit_bytes},
                  {200 * unit_bytes, division_bytes},
                  {300 * unit_bytes, division_bytes},
                  {400 * unit_bytes, 8 * division_bytes}};
  EXPECT_EQ(cheapest_run(made, 2 * unit_bytes + 10 * division_bytes, 2).first,
            2 * unit_bytes + division_bytes);
}

TEST(CanBeCut, AsksForWholeUnitsBeforeTheLastOne) {
  format::dense_layout made;
  made.extents = {{100 * unit_bytes, 3 * unit_bytes},
                  {200 * unit_bytes, division_bytes},
                  {300 * unit_bytes, 4711}};
  const std::uint64_t bytes = 3 * unit_bytes + division_bytes + 4711;
  EXPECT_TRUE(can_be_cut(made, bytes));
  made.extents.back().bytes = 2 * unit_bytes;
  EXPECT_FALSE(can_be_cut(made, bytes - 4711 + 2 * unit_bytes));
  made.extents = {{100 * unit_bytes, 3 * unit_bytes + format::page_bytes},
                  {200 * unit_bytes, unit_bytes}};
  EXPECT_FALSE(can_be_cut(made, 4 * unit_bytes + format::page_bytes));
}

}  // namespace
}  // namespace shale::arrays
