#include "format/space/space_map.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "format/bytes/byte_order.hpp"
#include "format/memory_pages.hpp"
#include "shale/error.hpp"
#include "support/failures.hpp"

namespace shale::format {
namespace {

// Pages in memory. The space map under test gives out their places, as in a container.
class accounted_pages final : public page_source, public page_sink {
 public:
  std::shared_ptr<const page> load_page(const page_ref& ref) override {
    return below.load_page(ref);
  }
  std::vector<std::byte> load_overflow(const overflow_ref& ref) override {
    return below.load_overflow(ref);
  }
  void fail(const page_ref& ref, const std::string& problem) override { below.fail(ref, problem); }
  void release(const extent& range) override { map->release(range.offset, range.bytes); }
  overflow_ref store_overflow(bytes_view value) override { return below.store_overflow(value); }
  page_ref write_page(page& made, std::uint64_t offset) override {
    return below.write_page(made, offset);
  }

  test::memory_pages below;
  space_map* map = nullptr;
};

// Works in RapidCheck properties and in plain tests.
#define REQUIRE_THAT(condition) \
  if (!(condition)) throw std::logic_error("does not hold: " #condition)

// Simulates a container's space over many generations. It implements the rules a second time with
// one record for each unit of 64 bytes: its owner, and the generations of its life.
class history {
 public:
  struct unit {
    std::uint64_t born = 0;   // 0: free
    std::uint64_t freed = 0;  // 0: live
  };

  static constexpr std::uint64_t unit_bytes = 64;

  void begin(std::vector<std::uint64_t> pins) {
    ++generation;
    guarded = pins;
    guarded.push_back(generation - 1);
    if (generation > 2) guarded.push_back(generation - 2);
    std::vector<generation_range> protected_generations;
    for (const std::uint64_t g : guarded) protected_generations.push_back({g, g});
    books.emplace(tree_kind::space, pages, root, &pages);
    map.emplace(*books, generation, end, generation_set(protected_generations));
    pages.map = &*map;
    taken.clear();
    before = units;
  }

  // Checks the rules for a range that was allocated.
  void take(std::uint64_t offset, std::uint64_t bytes, bool whole_pages) {
    REQUIRE_THAT(offset >= first_extent_offset);
    REQUIRE_THAT(offset % (whole_pages ? page_bytes : chunk_alignment) == 0u);
    const std::uint64_t stop =
        whole_pages ? page_space(bytes) + offset : chunk_space(bytes) + offset;
    grow(stop);
    for (std::uint64_t start = offset; start < stop; start += unit_bytes) {
      unit& u = units[start / unit_bytes];
      REQUIRE_THAT(!taken.contains(start / unit_bytes));
      REQUIRE_THAT(reusable(u));
      taken.insert(start / unit_bytes);
      u = {generation, 0};
    }
    // The range shares no page with bytes that another generation may read.
    for (std::uint64_t page = offset / page_bytes * page_bytes; page < page_space(stop);
         page += unit_bytes) {
      grow(page + unit_bytes);
      const unit& u = units[page / unit_bytes];
      REQUIRE_THAT(u.born == generation || reusable(u));
    }
  }

  void drop(std::uint64_t offset, std::uint64_t bytes) {
    for (std::uint64_t start = offset; start < offset + bytes; start += unit_bytes) {
      unit& u = units[start / unit_bytes];
      if (u.born == generation) {
        u = {};
        taken.erase(start / unit_bytes);
      } else {
        u.freed = generation;
      }
    }
  }

  std::uint64_t allocate(std::uint64_t bytes, std::uint64_t alignment = page_bytes) {
    const extent made = map->allocate(bytes, alignment);
    REQUIRE_THAT(made.offset % alignment == 0);
    take(made.offset, bytes, true);
    return made.offset;
  }

  std::uint64_t allocate_chunk(std::uint64_t stored_bytes) {
    const extent made = map->allocate_chunk(stored_bytes);
    take(made.offset, stored_bytes, false);
    return made.offset;
  }

  void release(std::uint64_t offset, std::uint64_t bytes) {
    map->release(offset, bytes);
    drop(offset, bytes);
  }

  void commit() {
    // The tree's own pages: the old ones are freed, the new ones are live.
    const std::set<std::uint64_t> old_pages = tree_pages;
    map->write_changes();
    REQUIRE_THAT(books->unplaced() == 0u);
    root = books->write();
    end = map->end_of_file();
    tree_pages.clear();
    const tree written(tree_kind::space, pages, root);
    written.for_each_extent([&](const extent& range) { tree_pages.insert(range.offset); });
    for (const std::uint64_t page : old_pages)
      if (!tree_pages.contains(page)) drop(page, page_bytes);
    for (const std::uint64_t page : tree_pages)
      if (!old_pages.contains(page)) take(page, page_bytes, true);
    expect_map_says_so(written);
  }

  // Compares the stored map, entry by entry, with the units.
  void expect_map_says_so(const tree& written) {
    std::uint64_t covered = 0;
    for (auto cursor = written.seek({}); cursor.valid(); cursor.next()) {
      const auto record = decode_space_record(cursor.key(), cursor.short_value(), end);
      REQUIRE_THAT(record.has_value());
      covered += record->entry.bytes;
      for (std::uint64_t byte = 0; byte < record->entry.bytes; byte += unit_bytes) {
        grow(record->offset + byte + unit_bytes);
        const unit& u = units[(record->offset + byte) / unit_bytes];
        if (record->section == space_section::live) {
          REQUIRE_THAT(u.freed == 0u && u.born == record->entry.born);
        } else if (record->entry.is_free()) {
          REQUIRE_THAT(reusable(u));
        } else {
          REQUIRE_THAT(u.born == record->entry.born && u.freed == record->entry.freed);
        }
      }
    }
    REQUIRE_THAT(covered ==
                 end - first_extent_offset);  // space.1: no byte is missing, none is counted twice
  }

  bool reusable(const unit& u) const {
    if (u.born == 0) return true;
    if (u.freed == 0) return false;
    return std::none_of(guarded.begin(), guarded.end(),
                        [&](std::uint64_t g) { return u.born <= g && g < u.freed; });
  }

  void grow(std::uint64_t stop) {
    if (units.size() * unit_bytes < stop) units.resize((stop + unit_bytes - 1) / unit_bytes);
  }

  std::uint64_t generation = 0;
  std::uint64_t end = first_extent_offset;
  page_ref root;
  accounted_pages pages;
  std::optional<tree> books;
  std::optional<space_map> map;
  std::vector<unit> units;
  std::vector<unit> before;
  std::set<std::uint64_t> taken;
  std::set<std::uint64_t> tree_pages;
  std::vector<std::uint64_t> guarded;
};

struct owned {
  std::uint64_t offset;
  std::uint64_t bytes;  // of space
};

// space.1, space.2, space.3, space.5
RC_GTEST_PROP(SpaceMap, IsAnExactPartitionThroughAnyHistory, ()) {
  history file;
  std::vector<owned> live;
  std::vector<std::uint64_t> pins;
  const auto generations = *rc::gen::inRange(1, 20);
  for (int g = 0; g < generations; ++g) {
    file.begin(pins);
    const auto operations = *rc::gen::container<std::vector<std::pair<unsigned, unsigned>>>(
        rc::gen::pair(rc::gen::inRange(0u, 7u), rc::gen::inRange(1u, 30'000u)));
    for (const auto& [kind, size] : operations) {
      if (kind < 2) {  // a dense extent, sometimes with a larger alignment
        const std::uint64_t alignment = size % 11 == 0 ? 64u << 10 : page_bytes;
        live.push_back({file.allocate(size, alignment), page_space(size)});
      } else if (kind < 4) {
        const std::uint64_t bytes = size % 9000 + 1;
        live.push_back({file.allocate_chunk(bytes), chunk_space(bytes)});
      } else if (kind == 4) {
        for (const std::uint64_t page : file.map->allocate_pages(size % 5)) {
          file.take(page, page_bytes, true);
          live.push_back({page, page_bytes});
        }
      } else if (!live.empty()) {
        const std::size_t victim = size % live.size();
        file.release(live[victim].offset, live[victim].bytes);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(victim));
      }
    }
    file.commit();
    // Readers come and go.
    if (*rc::gen::inRange(0, 3) == 0) pins.push_back(file.generation);
    if (!pins.empty() && *rc::gen::inRange(0, 3) == 0)
      pins.erase(pins.begin() +
                 *rc::gen::inRange<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(pins.size())));
  }
}

constexpr std::uint64_t mebibyte = 1u << 20;

TEST(SpaceMap, ReusesWhatNobodyCanRead) {
  history file;
  file.begin({});
  const std::uint64_t first = file.allocate(mebibyte);
  file.commit();
  file.begin({});
  file.release(first, mebibyte);
  EXPECT_NE(file.allocate(mebibyte), first);  // the base generation still reads it
  file.commit();
  file.begin({});  // the superblocks of generations 1 and 2 are valid
  EXPECT_NE(file.allocate(mebibyte), first);
  file.commit();
  file.begin({});
  EXPECT_EQ(file.allocate(mebibyte), first);
}

// space.2
TEST(SpaceMap, LeavesALongLivedReadersRangesAlone) {
  history file;
  file.begin({});
  const std::uint64_t first = file.allocate(mebibyte);
  file.commit();
  file.begin({1});
  file.release(first, mebibyte);
  file.commit();
  for (int i = 0; i < 5; ++i) {
    file.begin({1});
    EXPECT_NE(file.allocate(mebibyte), first);
    file.commit();
  }
  file.begin({3});  // a reader of a generation after the range was freed does not protect it
  EXPECT_EQ(file.allocate(mebibyte), first);
}

// space.4
TEST(SpaceMap, TakesBackAtOnceWhatTheSameTransactionReleases) {
  history file;
  file.begin({});
  const std::uint64_t first = file.allocate(mebibyte);
  file.release(first, mebibyte);
  EXPECT_EQ(file.allocate(mebibyte), first);
}

TEST(SpaceMap, PacksChunksOfOneTransaction) {
  history file;
  file.begin({});
  std::uint64_t next = file.allocate_chunk(100);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(file.allocate_chunk(100), next += 128);
}

// space.3
// The disk has no room for the allocation: the end of the file must move back.
TEST(SpaceMap, WithdrawsAnAllocationWithoutATrace) {
  for (const bool has_free_tail : {false, true}) {
    for (const std::uint64_t bytes : {page_bytes, 40 * mebibyte}) {
      history file;
      file.begin({});
      const std::uint64_t kept = file.allocate(3 * page_bytes);
      if (has_free_tail) file.release(file.allocate(2 * page_bytes), 2 * page_bytes);
      space_map& map = *file.map;
      const std::uint64_t end = map.end_of_file();
      map.withdraw(map.allocate(bytes, 2 * mebibyte), end);
      EXPECT_EQ(map.end_of_file(), end);
      EXPECT_TRUE(map.allocated_here(kept, 3 * page_bytes));
      EXPECT_EQ(file.allocate(page_bytes), kept + 3 * page_bytes);
      file.commit();
    }
  }
}

// A call that took space may fail before what it took has left the cache.
TEST(SpaceMap, CountsAllOfARangeThatIsTakenAgainAsFresh) {
  history file;
  file.begin({});
  space_map& map = *file.map;
  const std::uint64_t end = map.end_of_file();
  map.withdraw(map.allocate(page_bytes, page_bytes), end);
  const std::uint64_t chunk = file.allocate_chunk(3 * page_bytes);
  EXPECT_EQ(chunk, end);
  EXPECT_TRUE(map.take_fresh().contains(chunk, chunk + 3 * page_bytes));
}

// A small commit asks for pages several times.
TEST(SpaceMap, PlacesPagesBehindTheLastOnes) {
  history file;
  file.begin({});
  const std::uint64_t small = file.allocate(2 * page_bytes);
  file.allocate(page_bytes);
  const std::uint64_t roomy = file.allocate(9 * page_bytes);
  file.allocate(page_bytes);
  const std::uint64_t larger = file.allocate(10 * page_bytes);
  file.allocate(page_bytes);
  file.release(small, 2 * page_bytes);
  file.release(roomy, 9 * page_bytes);
  file.release(larger, 10 * page_bytes);
  space_map& map = *file.map;
  using pages = std::vector<std::uint64_t>;
  EXPECT_EQ(map.allocate_pages(2), (pages{roomy, roomy + page_bytes})) << "there is room for more";
  EXPECT_EQ(map.allocate_pages(1), pages{roomy + 2 * page_bytes});
  EXPECT_EQ(map.allocate_pages(7).front(), larger);
  EXPECT_EQ(map.allocate_pages(2).front(), larger + 7 * page_bytes);
  EXPECT_EQ(map.allocate_pages(6).front(), roomy + 3 * page_bytes);
}

TEST(SpaceMap, KeepsTransactionsOffEachOthersPages) {
  history file;
  file.begin({});
  const std::uint64_t first = file.allocate_chunk(100);
  file.commit();
  file.begin({});
  EXPECT_NE(file.allocate_chunk(100) / page_bytes, first / page_bytes);
}

TEST(SpaceMap, RefusesASecondReleaseOfTheSameRange) {
  history file;
  file.begin({});
  const std::uint64_t first = file.allocate(page_bytes);
  file.commit();
  file.begin({});
  file.release(first, page_bytes);
  EXPECT_THROW(file.map->release(first, page_bytes), error);
}

TEST(SpaceMap, RefusesToReleaseWhatIsNotLive) {
  history file;
  file.begin({});
  file.allocate(page_bytes);
  file.commit();
  file.begin({});
  file.map->release(file.end + page_bytes, page_bytes);
  EXPECT_THROW(file.map->write_changes(), error);
}

TEST(SpaceMap, StopsGrowingUnderSteadyUpdates) {
  history file;
  file.begin({});
  std::vector<owned> live;
  for (int i = 0; i < 200; ++i) live.push_back({file.allocate(3 * page_bytes), 3 * page_bytes});
  file.commit();
  const std::uint64_t start = file.end;
  for (std::size_t round = 0; round < 300; ++round) {
    file.begin({});
    owned& old = live[round * 7 % live.size()];
    file.release(old.offset, old.bytes);
    old.offset = file.allocate(old.bytes);
    file.commit();
  }
  EXPECT_LE(file.end, start + 64 * page_bytes);
}

// A map whose changes lead from leaf to leaf: a changed leaf gets another page, and the leaf after
// it says who uses the old one. So each round of `write_changes` changes one leaf more.
class chained_map {
 public:
  static constexpr std::uint64_t used_pages = 1500;
  static constexpr std::uint64_t free_pages = 64;
  static constexpr std::size_t chained_leaves = 8;

  static std::uint64_t page_at(std::uint64_t number) {
    return first_extent_offset + number * page_bytes;
  }

  // After the pages in use and the free ones comes a chunk, in whose page the file ends.
  static constexpr std::uint64_t end =
      first_extent_offset + (used_pages + free_pages) * page_bytes + chunk_alignment;

  // Generation 1 of the history gets this map.
  static void lay(history& file) {
    const std::vector<std::uint64_t> first = first_pages();
    ASSERT_GT(first.size(), chained_leaves + 2);
    std::vector<std::uint64_t> offsets;
    for (std::size_t leaf = 0; leaf < chained_leaves; ++leaf)
      offsets.push_back(page_at(first[leaf + 1] + 1));
    while (offsets.size() < first.size() + 1)  // the other leaves and the root
      offsets.push_back(page_at(first[1] + 2 + offsets.size()));
    ASSERT_LT(offsets.back(), page_at(first[2]));
    file.root = write(file.pages.below, offsets);
    file.tree_pages = {offsets.begin(), offsets.end()};
    file.generation = 1;
    file.end = end;
    file.grow(end);
    for (std::uint64_t byte = first_extent_offset; byte < end; byte += history::unit_bytes)
      if (byte < page_at(used_pages) || byte >= page_at(used_pages + free_pages))
        file.units[byte / history::unit_bytes] = {1, 0};
  }

 private:
  // Writes the map with its pages at these offsets: the leaves in order, then the root.
  static page_ref write(test::memory_pages& into, std::vector<std::uint64_t>& offsets) {
    tree made(tree_kind::space, into, {}, &into);
    const auto enter = [&](space_section section, std::uint64_t offset, const space_entry& entry) {
      made.insert(space_key(section, offset), encode_space_entry(entry));
    };
    for (std::uint64_t number = 0; number < used_pages; ++number)
      enter(space_section::live, page_at(number), {page_bytes, 1, space_entry::never});
    enter(space_section::live, end - chunk_alignment, {chunk_alignment, 1, space_entry::never});
    enter(space_section::unused, page_at(used_pages), {free_pages * page_bytes, 0, 0});
    if (offsets.empty())
      for (std::size_t page = 1; page <= made.unplaced(); ++page)
        offsets.push_back(page * page_bytes);
    made.place(offsets);
    return made.write();
  }

  // For each leaf, the number of the first page that it says something about.
  static std::vector<std::uint64_t> first_pages() {
    test::memory_pages anywhere;
    std::vector<std::uint64_t> offsets;
    write(anywhere, offsets);
    offsets.pop_back();  // the root
    std::vector<std::uint64_t> first;
    for (const std::uint64_t offset : offsets) {
      const page leaf(anywhere.pages.at(offset));
      EXPECT_TRUE(leaf.is_leaf());
      first.push_back((load_ordered(leaf.key(0), 1) - first_extent_offset) / page_bytes);
    }
    return first;
  }
};

// Pages that find no place in a few rounds go to the end of the file, which may lie inside a page.
TEST(SpaceMap, GivesItsOwnPagesWholePagesWhereverTheFileEnds) {
  history file;
  ASSERT_NO_FATAL_FAILURE(chained_map::lay(file));
  ASSERT_NE(file.end % page_bytes, 0u);
  file.begin({});
  file.release(chained_map::page_at(5), page_bytes);
  file.commit();
  EXPECT_GT(file.end, chained_map::end) << "the free pages were enough, so this tests nothing";
  file.begin({});  // reads the map
  file.allocate(page_bytes);
  file.commit();
}

TEST(SpaceMap, RefusesAFileThatEndsInsideOfAUnit) {
  history file;
  file.begin({});
  file.allocate(page_bytes);
  file.commit();
  file.end += 1;
  EXPECT_EQ(test::code_of([&] { file.begin({}); }), errc::corrupt);
}

}  // namespace
}  // namespace shale::format
