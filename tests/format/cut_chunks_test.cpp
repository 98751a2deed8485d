// Tests the numbers of chunks in grids that grow, and which chunks a smaller shape cuts.

#include "format/chunks/cut_chunks.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>

#include "format/chunks/chunk_index.hpp"
#include "format/chunks/chunk_numbers.hpp"
#include "format/pages/page.hpp"
#include "format/recorded_container.hpp"
#include "format/small_history.hpp"
#include "fuzz/container_changes.hpp"
#include "support/failures.hpp"

namespace shale::format {
namespace {

using test::code_of;

constexpr std::chrono::milliseconds at_once{0};

// ---- capacities -------------------------------------------------------------------------------

double product(const dims& capacity) {
  double all = 1;
  for (const index_t extent : capacity) all *= static_cast<double>(extent);
  return all;
}

TEST(GridCapacity, LeavesRoomAlongEveryAxis) {
  EXPECT_EQ(capacity_with_room({}), dims{});
  EXPECT_EQ(capacity_with_room({7}), (dims{7}));
  EXPECT_EQ(capacity_with_room({0, 0}), (dims{1, index_t{1} << 31}));
  EXPECT_EQ(capacity_with_room({3, 5}), (dims{3, 5 * (index_t{1} << 29)}));
  EXPECT_EQ(capacity_with_room({1, 1, 1}), (dims{1, index_t{1} << 21, index_t{1} << 20}));
  for (const dims& grid : {dims{1000, 1000, 1000}, dims::filled(32, 3), dims::filled(32, 1)}) {
    const dims capacity = capacity_with_room(grid);
    EXPECT_EQ(capacity[0], grid[0]);
    for (index_t axis = 1; axis < grid.size(); ++axis) EXPECT_GE(capacity[axis], grid[axis]);
    EXPECT_LE(product(capacity), 0x1p62);
  }
}

// numbers.1
TEST(GridCapacity, KeepsTheNumbersAsLongAsItCan) {
  const dims start = capacity_with_room({3, 5});
  EXPECT_EQ(grown_capacity(start, {1, 1}), start);
  EXPECT_EQ(grown_capacity(start, {3, 5'000'000}), start);
  EXPECT_EQ(grown_capacity(start, {1'000'000'000, 1000}), (dims{1'000'000'000, start[1]}));
  EXPECT_TRUE(same_numbers(start, grown_capacity(start, {1'000'000'000, 1000})));
  // The capacities of older versions have no room.
  EXPECT_EQ(grown_capacity({4, 2}, {9, 2}), (dims{9, 2}));
  const dims roomy = grown_capacity({4, 2}, {4, 3});
  EXPECT_FALSE(same_numbers({4, 2}, roomy));
  EXPECT_GT(roomy[1], 1'000'000);
}

TEST(GridCapacity, DoublesAnAxisWhoseRoomIsUsedUp) {
  dims capacity = dims::filled(32, 2);
  int renumbered = 0;
  dims grid = dims::filled(32, 1);
  for (index_t extent = 1; extent <= 1'000'000; ++extent) {
    grid[31] = extent;
    const dims grown = grown_capacity(capacity, grid);
    ASSERT_GE(grown[31], extent);
    ASSERT_LE(product(grown), 0x1p62);
    renumbered += same_numbers(grown, capacity) ? 0 : 1;
    capacity = grown;
  }
  EXPECT_LE(renumbered, 20);
  // The first axis takes the room of the others, if it needs it.
  grid = {index_t{1} << 50, 3};
  const dims grown = grown_capacity(capacity_with_room({1, 3}), grid);
  EXPECT_EQ(grown[0], grid[0]);
  EXPECT_GE(grown[1], 3);
  EXPECT_LE(product(grown), 0x1p62);
}

// ---- resizing ---------------------------------------------------------------------------------

class CutChunks : public test::recorded_container {
 protected:
  static array_record record_of(const dims& shape, const dims& chunk_shape, const dims& capacity) {
    array_record record;
    record.name = "a";
    record.dtype = dtype::uint8;
    record.shape = shape;
    record.fill_value.resize(1);
    chunked_layout layout;
    layout.chunk_shape = chunk_shape;
    layout.grid_capacity = capacity;
    record.layout = layout;
    return record;
  }

  static void store(transaction& change, std::uint64_t number) {
    const std::vector<std::byte> bytes(chunk_bytes(*change.find("a")),
                                       static_cast<std::byte>(number % 250 + 1));
    test::store_chunk(change, "a", number,
                      codec({}, dtype::uint8).encode(bytes, codec_workspace::of_this_thread()));
  }

  static std::set<std::uint64_t> numbers(const std::vector<numbered_chunk>& chunks) {
    std::set<std::uint64_t> all;
    for (const auto& chunk : chunks) all.insert(chunk.number);
    EXPECT_EQ(all.size(), chunks.size());
    return all;
  }
};

// The oracle looks at every element of every present chunk.
TEST_F(CutChunks, AreThoseWithElementsOutside) {
  std::mt19937 random(3);
  const auto pick = [&](index_t below) { return static_cast<index_t>(random()) % below; };
  for (int round = 0; round < 200; ++round) {
    transaction change = container.begin(at_once);
    const dims shape{1 + pick(9), 1 + pick(9), 1 + pick(9)};
    const dims extents{1 + pick(4), 1 + pick(4), 1 + pick(4)};
    array_record record = record_of(shape, extents, {20, 10 + pick(5), 9 + pick(20)});
    change.put(record);
    const dims grid = chunk_grid(record);
    std::map<std::uint64_t, dims> present;
    for (index_t i = 0; i < grid[0]; ++i)
      for (index_t j = 0; j < grid[1]; ++j)
        for (index_t k = 0; k < grid[2]; ++k) {
          if (pick(4) == 0) continue;
          const std::uint64_t number = chunk_number(record.chunked(), {i, j, k});
          present[number] = {i, j, k};
          store(change, number);
        }
    const dims smaller{pick(10), pick(10), pick(10)};
    std::set<std::uint64_t> outside;
    std::set<std::uint64_t> across;
    for (const auto& [number, chunk] : present) {
      bool any_in = true;
      bool any_out = false;
      for (index_t axis = 0; axis < 3; ++axis) {
        if (smaller[axis] >= shape[axis]) continue;
        any_in = any_in && chunk[axis] * extents[axis] < smaller[axis];
        any_out = any_out || (chunk[axis] + 1) * extents[axis] > smaller[axis];
      }
      if (!any_in) outside.insert(number);
      else if (any_out) across.insert(number);
    }
    const cut_chunks cut = change.chunks_cut_by("a", smaller);
    ASSERT_EQ(numbers(cut.outside), outside) << round;
    ASSERT_EQ(numbers(cut.across), across) << round;
  }
}

TEST_F(CutChunks, MustBeReplaced) {
  transaction change = container.begin(at_once);
  change.put(record_of({10}, {4}, {3}));
  for (std::uint64_t number = 0; number < 3; ++number) store(change, number);
  EXPECT_EQ(code_of([&] { change.resize("a", {5}, {}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { change.resize("a", {5, 1}, {}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { change.resize("a", {-1}, {}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { change.resize("b", {5}, {}); }), errc::not_found);
  EXPECT_EQ(change.find("a")->shape, (dims{10}));
  change.resize("a", {5}, std::vector<numbered_chunk>{{1, {}}});
  EXPECT_EQ(change.find("a")->chunked().chunk_count, 1u);
  EXPECT_EQ(code_of([&] { store(change, 2); }), errc::invalid_argument);
  change.commit();
  EXPECT_EQ(test::unsound(container.latest()), "");
}

// numbers.2
TEST_F(CutChunks, ChunksStayWhereTheyAreWhenNumbersChange) {
  {
    transaction change = container.begin(at_once);
    change.put(record_of({4, 2}, {1, 1}, {4, 2}));
    for (std::uint64_t number = 0; number < 8; ++number) store(change, number);
    change.commit();
  }
  const generation_view before = container.latest();
  const auto old_chunks = before.chunks(*before.find("a"));
  transaction change = container.begin(at_once);
  change.resize("a", {4, 3}, {});
  change.commit();
  const generation_view after = container.latest();
  const array_record record = *after.find("a");
  const auto chunks = after.chunks(record);
  ASSERT_EQ(chunks.size(), 8u);
  for (std::uint64_t number = 0; number < 8; ++number) {
    const dims chunk = chunk_index(before.find("a")->chunked(), old_chunks[number].number);
    EXPECT_EQ(after.find_chunk(record, chunk_number(record.chunked(), chunk)),
              old_chunks[number].entry);
    EXPECT_EQ(chunks[number].entry, old_chunks[number].entry);
  }
  EXPECT_EQ(before.chunks(*before.find("a")).size(), 8u);
  EXPECT_EQ(test::unsound(after), "");
}

// ---- indexes in hostile files -------------------------------------------------------------------

// A file whose checksums are correct. The last entry of the index has another key or another value.
class DamagedIndex : public CutChunks {
 protected:
  DamagedIndex() {
    transaction change = container.begin(at_once);
    change.put(record_of({4, 2}, {1, 1}, {4, 2}));
    for (std::uint64_t number = 0; number < 8; ++number) store(change, number);
    change.commit();
    const generation_view view = container.latest();
    index_offset = view.find("a")->chunked().index.offset;
    last = view.find_chunk(*view.find("a"), 7).value();
  }

  template <class Change>
  errc code_with_last(const std::string& key, const chunk_entry& entry, Change&& made) {
    fuzz::content bytes = files.now().at(path);
    const fuzz::checksums sums(bytes);
    const page sound{bytes_view(bytes).subspan(index_offset, page_bytes)};
    page changed(tree_kind::chunks, page_kind::leaf, 0);
    for (std::size_t i = 0; i < 7; ++i) changed.insert_value(i, sound.key(i), sound.value(i));
    changed.insert_value(7, key, encode_chunk_entry(entry));
    changed.stamp(sound.generation(), index_offset);
    EXPECT_FALSE(page::problem(changed.bytes()));
    std::copy(changed.bytes().begin(), changed.bytes().end(),
              bytes.begin() + static_cast<std::ptrdiff_t>(index_offset));
    sums.correct(bytes);
    test::recording_file_system hostile({{path, bytes}});
    container_file opened = container_file::open(hostile, path, open_access::write);
    transaction change = opened.begin(at_once);
    return code_of([&] { made(change); });
  }

  // Makes the second axis longer than its capacity, so that all chunks get other numbers.
  errc growth_with_last(const std::string& key, const chunk_entry& entry) {
    return code_with_last(key, entry, [](transaction& change) { change.resize("a", {4, 3}, {}); });
  }

  std::uint64_t index_offset = 0;
  chunk_entry last;
};

TEST_F(DamagedIndex, IsNotGivenOtherNumbers) {
  EXPECT_EQ(growth_with_last(chunk_key(7), last), errc{});
  EXPECT_EQ(growth_with_last("\x01", last), errc::corrupt);
  EXPECT_EQ(growth_with_last(chunk_key(7) + "x", last), errc::corrupt);
  EXPECT_EQ(growth_with_last(chunk_key(8), last), errc::corrupt);  // a fifth row
  chunk_entry beyond = last;
  beyond.offset = std::uint64_t{1} << 40;
  EXPECT_EQ(growth_with_last(chunk_key(7), beyond), errc::corrupt);
}

TEST_F(DamagedIndex, IsNotRemovedWithItsArray) {
  const auto removal = [](transaction& change) { change.erase("a"); };
  EXPECT_EQ(code_with_last(chunk_key(7), last, removal), errc{});
  EXPECT_EQ(code_with_last("\x01", last, removal), errc::corrupt);
}

}  // namespace
}  // namespace shale::format
