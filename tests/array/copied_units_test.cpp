// Tests which units of a dense array a view touches, and how extents are cut and joined.
#include "array/elements/copied_units.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "format/bytes/file_layout.hpp"

namespace shale::arrays {
namespace {

using format::byte_interval;
using format::extent;

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

TEST(WithoutKnownUnits, AreTheOthers) {
  format::range_set known;
  for (const std::uint64_t unit : {0, 4, 5, 9, 12})
    known.unite(unit * unit_bytes, (unit + 1) * unit_bytes);
  std::vector<std::uint64_t> left;
  for (const auto& [first, end] : without({unit_bytes, 11 * unit_bytes}, known))
    for (std::uint64_t at = first; at < end; at += unit_bytes) left.push_back(at / unit_bytes);
  EXPECT_EQ(left, (std::vector<std::uint64_t>{1, 2, 3, 6, 7, 8, 10}));
}

// Where each unit of an array lies in the file.
using unit_places = std::map<std::uint64_t, std::uint64_t>;

unit_places places_of(const std::vector<extent>& extents) {
  unit_places places;
  std::uint64_t unit = 0;
  for (const extent& piece : extents)
    for (std::uint64_t at = 0; at < piece.bytes; at += unit_bytes)
      places[unit++] = piece.offset + at;
  return places;
}

TEST(ExtentsAfter, KeepWhatHasNotMoved) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t units = 1 + random() % 40;
    const std::uint64_t bytes = units * unit_bytes - (random() % 2 == 0 ? 0 : 4711);
    format::array_record record;
    record.name = "a";
    record.dtype = dtype::uint8;
    record.shape = {static_cast<index_t>(bytes)};
    record.fill_value.resize(1);
    format::dense_layout made;
    made.extents = {{100 * unit_bytes, bytes}};
    unit_places wanted = places_of(made.extents);
    format::range_set copied;
    // New space lies behind the old, or, to be joined, right behind the last new extent.
    std::uint64_t free = 1000 * unit_bytes;
    for (int step = 0; step < 6; ++step) {
      std::vector<moved_bytes> moved;
      for (std::uint64_t unit = 0; unit < units; ++unit) {
        const byte_interval range{unit * unit_bytes, std::min((unit + 1) * unit_bytes, bytes)};
        if (copied.contains(range.first, range.end) || random() % 5 != 0) continue;
        moved.push_back({range, {free, range.end - range.first}});
        wanted[unit] = free;
        free += unit_bytes * (1 + random() % 2);
      }
      made.extents = extents_after(made, bytes, moved, copied);
      for (const moved_bytes& part : moved) copied.unite(part.range.first, part.range.end);
      ASSERT_EQ(places_of(made.extents), wanted) << round;
      record.layout = made;
      ASSERT_EQ(format::problem_of(record), std::nullopt) << round;
    }
  }
}

TEST(ExtentsAfter, JoinNeighboursOfOneKind) {
  format::dense_layout made;
  made.extents = {{100 * unit_bytes, 6 * unit_bytes}};
  format::range_set copied;
  const auto move = [&](std::uint64_t unit, std::uint64_t to) {
    const byte_interval range{unit * unit_bytes, (unit + 1) * unit_bytes};
    const moved_bytes moved[] = {{range, {to * unit_bytes, unit_bytes}}};
    made.extents = extents_after(made, 6 * unit_bytes, moved, copied);
    copied.unite(range.first, range.end);
  };
  move(1, 200);
  move(2, 201);
  EXPECT_EQ(made.extents, (std::vector<extent>{{100 * unit_bytes, unit_bytes},
                                               {200 * unit_bytes, 2 * unit_bytes},
                                               {103 * unit_bytes, 3 * unit_bytes}}));
  // A copied unit that follows an old one in the file stays an extent of its own.
  move(5, 105);
  EXPECT_EQ(made.extents.size(), 4u);
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
