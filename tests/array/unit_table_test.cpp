// Tests where the units of a dense array lie after some have moved, and which of them are new.
#include "array/elements/unit_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "array/elements/copied_units.hpp"
#include "format/catalog/array_record.hpp"

namespace shale::arrays {
namespace {

using format::byte_interval;
using format::extent;

// The oracle: for each unit, the place of its first byte in the file, and whether it is new.
using unit_list = std::vector<std::pair<std::uint64_t, bool>>;

std::vector<std::uint64_t> places_of(const unit_list& units) {
  std::vector<std::uint64_t> places;
  for (const auto& unit : units) places.push_back(unit.first);
  return places;
}

std::vector<std::uint64_t> places_in(const std::vector<extent>& extents) {
  std::vector<std::uint64_t> places;
  for (const extent& piece : extents)
    for (std::uint64_t at = 0; at < piece.bytes; at += unit_bytes)
      places.push_back(piece.offset + at);
  return places;
}

// The numbers of the units in some parts of the array.
std::vector<std::uint64_t> units_in(const std::vector<byte_interval>& parts) {
  std::vector<std::uint64_t> units;
  for (const auto& [first, end] : parts)
    for (std::uint64_t at = first; at < end; at += unit_bytes) units.push_back(at / unit_bytes);
  return units;
}

byte_interval range_of(std::uint64_t first, std::uint64_t end, std::uint64_t bytes) {
  return {first * unit_bytes, std::min(end * unit_bytes, bytes)};
}

void expect_answers(const unit_table& table, const unit_list& wanted, std::uint64_t bytes) {
  ASSERT_EQ(places_in(table.extents()), places_of(wanted));
  ASSERT_EQ(table.extents().size(), table.size());
  std::vector<std::uint64_t> fresh, new_places;
  for (std::uint64_t unit = 0; unit < wanted.size(); ++unit) {
    ASSERT_EQ(table.is_new(unit * unit_bytes), wanted[unit].second);
    if (wanted[unit].second) fresh.push_back(unit);
    if (wanted[unit].second) new_places.push_back(wanted[unit].first);
  }
  ASSERT_EQ(units_in(table.new_parts()), fresh);
  ASSERT_EQ(places_in(table.new_extents()), new_places);
  ASSERT_EQ(table.has_new_bytes(), !fresh.empty());
  for (std::uint64_t first = 0; first < wanted.size(); ++first)
    for (std::uint64_t end = first + 1; end <= wanted.size(); ++end) {
      const byte_interval range = range_of(first, end, bytes);
      std::vector<std::uint64_t> old, places;
      for (std::uint64_t unit = first; unit < end; ++unit) {
        places.push_back(wanted[unit].first);
        if (!wanted[unit].second) old.push_back(unit);
      }
      ASSERT_EQ(units_in(table.old_parts(range)), old);
      ASSERT_EQ(places_in(table.pieces(range)), places);
    }
}

TEST(UnitTable, KnowsWhereEachUnitLies) {
  std::mt19937 random(2);
  for (int round = 0; round < 60; ++round) {
    const std::uint64_t units = 1 + random() % 24;
    const std::uint64_t bytes = units * unit_bytes - (random() % 2 == 0 ? 0 : 4711);
    format::array_record record;
    record.name = "a";
    record.dtype = dtype::uint8;
    record.shape = {static_cast<index_t>(bytes)};
    record.fill_value.resize(1);
    unit_list wanted;
    for (std::uint64_t unit = 0; unit < units; ++unit)
      wanted.emplace_back((100 + unit) * unit_bytes, false);
    const extent whole[] = {{100 * unit_bytes, bytes}};
    unit_table table(whole);
    // New space lies behind the old, or, to be joined, right behind the last new extent.
    std::uint64_t free = 1000 * unit_bytes;
    for (int step = 0; step < 5; ++step) {
      std::vector<moved_bytes> moved;
      for (std::uint64_t unit = 0; unit < units; ++unit) {
        const byte_interval range = range_of(unit, unit + 1, bytes);
        if (wanted[unit].second || random() % 5 != 0) continue;
        moved.push_back({range, {free, range.end - range.first}});
        wanted[unit] = {free, true};
        free += unit_bytes * (1 + random() % 2);
      }
      table.move(moved);
      ASSERT_NO_FATAL_FAILURE(expect_answers(table, wanted, bytes)) << round;
      format::dense_layout made;
      made.extents = table.extents();
      record.layout = made;
      ASSERT_EQ(format::problem_of(record), std::nullopt) << round;
      // An array that gets another shape begins with a table of what is new already.
      const unit_table again(table.extents(), table.new_parts());
      ASSERT_NO_FATAL_FAILURE(expect_answers(again, wanted, bytes)) << round;
    }
  }
}

TEST(UnitTable, JoinsNeighboursOfOneKind) {
  const extent whole[] = {{100 * unit_bytes, 6 * unit_bytes}};
  unit_table table(whole);
  const auto move = [&](std::uint64_t unit, std::uint64_t to) {
    const moved_bytes moved[] = {
        {{unit * unit_bytes, (unit + 1) * unit_bytes}, {to * unit_bytes, unit_bytes}}};
    table.move(moved);
  };
  move(2, 201);
  move(1, 200);
  EXPECT_EQ(table.extents(), (std::vector<extent>{{100 * unit_bytes, unit_bytes},
                                                  {200 * unit_bytes, 2 * unit_bytes},
                                                  {103 * unit_bytes, 3 * unit_bytes}}));
  move(3, 202);
  EXPECT_EQ(table.extents(), (std::vector<extent>{{100 * unit_bytes, unit_bytes},
                                                  {200 * unit_bytes, 3 * unit_bytes},
                                                  {104 * unit_bytes, 2 * unit_bytes}}));
  // A copied unit that follows an old one in the file stays an extent of its own.
  move(5, 105);
  EXPECT_EQ(table.size(), 4u);
}

TEST(UnitTable, OfNoBytesIsEmpty) {
  const unit_table none;
  EXPECT_EQ(none.size(), 0u);
  EXPECT_TRUE(none.extents().empty());
  EXPECT_TRUE(none.new_parts().empty());
  EXPECT_TRUE(none.old_parts({0, 0}).empty());
  EXPECT_TRUE(none.pieces({0, 0}).empty());
  EXPECT_FALSE(none.is_new(0));
  EXPECT_FALSE(none.has_new_bytes());
}

// A range of several units may hold new ones, as when a commit joins extents.
TEST(UnitTable, MovesNewUnitsAgain) {
  const extent whole[] = {{100 * unit_bytes, 5 * unit_bytes}};
  const byte_interval fresh[] = {{unit_bytes, 2 * unit_bytes}, {3 * unit_bytes, 4 * unit_bytes}};
  unit_table table(whole, fresh);
  EXPECT_EQ(table.size(), 5u);
  const moved_bytes moved[] = {{{0, 4 * unit_bytes}, {300 * unit_bytes, 4 * unit_bytes}}};
  table.move(moved);
  EXPECT_EQ(table.extents(), (std::vector<extent>{{300 * unit_bytes, 4 * unit_bytes},
                                                  {104 * unit_bytes, unit_bytes}}));
}

}  // namespace
}  // namespace shale::arrays
