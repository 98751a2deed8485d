#include "format/pages/tree.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "format/bytes/byte_order.hpp"
#include "format/memory_pages.hpp"
#include "support/failures.hpp"

namespace shale::format {
namespace {

using test::memory_pages;
using model = std::map<std::string, std::string>;

bytes_view bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

model contents(const tree& index) {
  model found;
  std::string previous;
  for (auto cursor = index.seek({}); cursor.valid(); cursor.next()) {
    EXPECT_LT(previous, cursor.key());
    previous = cursor.key();
    found.emplace(cursor.key(), text_of(cursor.value()));
  }
  return found;
}

// The tree must occupy exactly the places that were given out and not released.
void expect_books_balance(const tree& index, const memory_pages& pages) {
  std::set<std::uint64_t> used;
  index.for_each_extent(
      [&](const extent& range) { EXPECT_TRUE(used.insert(range.offset).second); });
  EXPECT_EQ(used, pages.live);
  EXPECT_EQ(pages.double_releases, 0);
}

// A difficult key: few lengths, long common prefixes, sometimes huge.
std::string make_key(unsigned number) {
  std::string key;
  switch (number % 4) {
    case 0:
      append_ordered(key, number * 2654435761u);
      break;
    case 1:
      key = "group/" + std::to_string(number % 97) + "/array " + std::to_string(number);
      break;
    case 2:
      key = std::string(number % 1023 + 1, static_cast<char>('a' + number % 3));
      break;
    default:
      key = std::string(1000, 'x') + std::to_string(number);
      break;
  }
  return key;
}

std::string make_value(unsigned number) {
  const std::size_t lengths[] = {0, 8, 24, 300, 1300, 1400, 9000};
  return std::string(lengths[number % 7], static_cast<char>('A' + number % 23));
}

// page.2: keys and values of every size overflow pages, which are split.
RC_GTEST_PROP(Tree, BehavesAsAnOrderedMap, ()) {
  memory_pages pages;
  model expected;
  tree real(tree_kind::catalog, pages, {}, &pages);
  const auto operations = *rc::gen::container<std::vector<std::pair<unsigned, unsigned>>>(
      rc::gen::pair(rc::gen::inRange(0u, 8u), rc::gen::inRange(0u, 4000u)));
  // Each random operation works on a run of neighbours, so that pages fill, split and empty.
  for (const auto& [kind, seed] : operations) {
    for (unsigned i = 0; i < 40; ++i) {
      const std::string key = make_key((seed + i * (kind + 1)) % 4000);
      if (kind < 4) {
        const std::string value = make_value(seed + i);
        RC_ASSERT(real.insert(key, bytes_of(value)) == !expected.contains(key));
        expected[key] = value;
      } else if (kind < 7) {
        RC_ASSERT(real.erase(key) == (expected.erase(key) > 0));
      }
    }
    if (kind == 7) {
      const page_ref root = pages.commit(real);
      real = tree(tree_kind::catalog, pages, root, &pages);
    }
  }
  RC_ASSERT(contents(real) == expected);
  RC_ASSERT(real.empty() == expected.empty());
  const page_ref root = pages.commit(real);
  const tree reopened(tree_kind::catalog, pages, root);
  RC_ASSERT(contents(reopened) == expected);
  expect_books_balance(reopened, pages);
  for (unsigned i = 0; i < 4000; i += 37) {
    const std::string key = make_key(i);
    const auto found = reopened.find(key);
    const auto want = expected.find(key);
    RC_ASSERT(found.has_value() == (want != expected.end()));
    if (found) RC_ASSERT(text_of(*found) == want->second);
    const auto above = reopened.seek(key);
    const auto want_above = expected.lower_bound(key);
    RC_ASSERT(above.valid() == (want_above != expected.end()));
    if (above.valid()) RC_ASSERT(above.key() == want_above->first);
    const auto below = reopened.seek_floor(key);
    auto want_below = expected.upper_bound(key);
    RC_ASSERT(below.valid() == (want_below != expected.begin()));
    if (below.valid()) RC_ASSERT(below.key() == std::prev(want_below)->first);
  }
}

TEST(Tree, EmptyTreeHasNothing) {
  memory_pages pages;
  tree empty(tree_kind::catalog, pages, {}, &pages);
  EXPECT_TRUE(empty.empty());
  EXPECT_FALSE(empty.find("a"));
  EXPECT_FALSE(empty.seek("").valid());
  EXPECT_FALSE(empty.seek_floor("zz").valid());
  EXPECT_FALSE(empty.erase("a"));
  EXPECT_EQ(empty.unplaced(), 0u);
  EXPECT_FALSE(empty.write());
}

TEST(Tree, KeysInAnyOrderFillPagesWellWhenAppended) {
  memory_pages pages;
  tree index(tree_kind::chunks, pages, {}, &pages);
  const std::string value(32, 'v');
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    std::string key;
    append_ordered(key, i);
    index.insert(key, bytes_of(value));
  }
  pages.commit(index);
  // An entry has 46 bytes, so a page has room for 88. Appending leaves full pages.
  EXPECT_LE(pages.live.size(), 10'000 / 88 + 5);
}

TEST(Tree, BigEndianKeysOrderAsNumbers) {
  memory_pages pages;
  tree index(tree_kind::chunks, pages, {}, &pages);
  for (const std::uint64_t number : {std::uint64_t{256}, std::uint64_t{1}, std::uint64_t{255},
                                     std::uint64_t{1} << 63, std::uint64_t{0}}) {
    std::string key;
    append_ordered(key, number);
    index.insert(key, {});
  }
  std::vector<std::uint64_t> order;
  for (auto cursor = index.seek({}); cursor.valid(); cursor.next())
    order.push_back(load_ordered(cursor.key(), 0));
  EXPECT_EQ(order, (std::vector<std::uint64_t>{0, 1, 255, 256, std::uint64_t{1} << 63}));
}

TEST(Tree, ReadsOnePathToFindOneKey) {
  memory_pages pages;
  tree catalog(tree_kind::catalog, pages, {}, &pages);
  const std::string value(200, 'd');
  for (int i = 0; i < 100'000; ++i) catalog.insert("array " + std::to_string(i), bytes_of(value));
  const page_ref root = pages.commit(catalog);
  const tree reopened(tree_kind::catalog, pages, root);
  pages.loads = 0;
  EXPECT_TRUE(reopened.find("array 77777"));
  EXPECT_LE(pages.loads, 4);
}

// tree.1, tree.4
TEST(Tree, NeverChangesAPageOfAnOlderRoot) {
  memory_pages pages;
  tree first(tree_kind::catalog, pages, {}, &pages);
  model before;
  for (unsigned i = 0; i < 2000; ++i) {
    first.insert(make_key(i), bytes_of(make_value(i)));
    before[make_key(i)] = make_value(i);
  }
  const page_ref old_root = pages.commit(first);
  const auto written = pages.pages;
  tree second(tree_kind::catalog, pages, old_root, &pages);
  for (unsigned i = 0; i < 2000; i += 2) second.erase(make_key(i));
  for (unsigned i = 1; i < 2000; i += 6) second.insert(make_key(i), bytes_of("new"));
  EXPECT_EQ(pages.pages, written);
  pages.commit(second);
  // The old root still leads to the old entries: released places were not written.
  EXPECT_EQ(contents(tree(tree_kind::catalog, pages, old_root)), before);
}

TEST(Tree, ClearingReleasesEverything) {
  memory_pages pages;
  tree made(tree_kind::catalog, pages, {}, &pages);
  for (unsigned i = 0; i < 500; ++i) made.insert(make_key(i), bytes_of(make_value(i)));
  tree again(tree_kind::catalog, pages, pages.commit(made), &pages);
  again.insert("one more", bytes_of("value"));  // some pages are changed, most are not
  again.clear();
  EXPECT_TRUE(again.empty());
  EXPECT_TRUE(pages.live.empty());
  EXPECT_EQ(pages.double_releases, 0);
}

TEST(Tree, RefusesKeysThatDoNotFit) {
  memory_pages pages;
  tree made(tree_kind::catalog, pages, {}, &pages);
  EXPECT_THROW(made.insert("", {}), error);
  EXPECT_THROW(made.insert(std::string(1025, 'k'), {}), error);
  EXPECT_TRUE(made.insert(std::string(1024, 'k'), {}));
}

// ---- trees in hostile files --------------------------------------------------------------------

class DamagedTree : public testing::Test {
 protected:
  // Replaces a page by another sound page, and corrects the checksum in its parent.
  page_ref replace_root(const page& content) {
    page stamped = content;
    return pages.write_page(stamped, 1u << 20);
  }

  errc reading(const page_ref& root) {
    try {
      const tree damaged(tree_kind::catalog, pages, root);
      for (auto cursor = damaged.seek({}); cursor.valid(); cursor.next()) (void)cursor.value();
      return errc{};
    } catch (const error& failure) {
      return failure.code();
    }
  }

  page leaf(std::initializer_list<const char*> keys, tree_kind kind = tree_kind::catalog) {
    page made(kind, page_kind::leaf, 0);
    for (const char* const key : keys) made.insert_value(made.count(), key, {});
    return made;
  }

  page_ref write(const page& content) {
    page stamped = content;
    return pages.write_page(stamped, next += page_bytes);
  }

  memory_pages pages;
  std::uint64_t next = 0;
};

TEST_F(DamagedTree, ReadsASoundOne) {
  page root(tree_kind::catalog, page_kind::branch, 1);
  root.insert_child(0, {}, write(leaf({"a", "b"})));
  root.insert_child(1, "c", write(leaf({"c", "d"})));
  EXPECT_EQ(reading(write(root)), errc{});
}

// tree.3
TEST_F(DamagedTree, RefusesKeysOutsideTheirBounds) {
  page root(tree_kind::catalog, page_kind::branch, 1);
  root.insert_child(0, {}, write(leaf({"a", "c"})));
  root.insert_child(1, "c", write(leaf({"c", "d"})));
  EXPECT_EQ(reading(write(root)), errc::corrupt);
  page other(tree_kind::catalog, page_kind::branch, 1);
  other.insert_child(0, {}, write(leaf({"a"})));
  other.insert_child(1, "c", write(leaf({"b", "d"})));
  EXPECT_EQ(reading(write(other)), errc::corrupt);
}

// tree.3
TEST_F(DamagedTree, RefusesOneChildInTwoPlaces) {
  const page_ref shared = write(leaf({"b"}));
  page root(tree_kind::catalog, page_kind::branch, 1);
  root.insert_child(0, {}, shared);
  root.insert_child(1, "c", shared);
  EXPECT_EQ(reading(write(root)), errc::corrupt);
}

// tree.3
TEST_F(DamagedTree, RefusesAChildOfTheWrongLevel) {
  page inner(tree_kind::catalog, page_kind::branch, 2);
  inner.insert_child(0, {}, write(leaf({"a"})));
  page root(tree_kind::catalog, page_kind::branch, 3);
  root.insert_child(0, {}, write(inner));
  EXPECT_EQ(reading(write(root)), errc::corrupt);
}

TEST_F(DamagedTree, RefusesAPageOfAnotherTree) {
  EXPECT_EQ(reading(write(leaf({"a"}, tree_kind::chunks))), errc::corrupt);
  page root(tree_kind::catalog, page_kind::branch, 1);
  root.insert_child(0, {}, write(leaf({"a"}, tree_kind::space)));
  EXPECT_EQ(reading(write(root)), errc::corrupt);
}

// Whoever changes an entry of the space map releases the old value's extent without reading it.
TEST_F(DamagedTree, RefusesASpaceMapWithValuesOutsideItsPages) {
  const auto read = [&](tree_kind kind) {
    page made(kind, page_kind::leaf, 0);
    made.insert_overflow(0, "key", {{std::uint64_t{1} << 58, std::uint64_t{1} << 62}, {}});
    const tree damaged(kind, pages, write(made));
    return test::code_of([&] { (void)damaged.seek({}); });
  };
  EXPECT_EQ(read(tree_kind::catalog), errc{});
  EXPECT_EQ(read(tree_kind::space), errc::corrupt);
}

// A tree with the most levels allowed, whose pages are so full that another key splits every one.
TEST(Tree, ThatCannotGrowHigherRefusesKeys) {
  memory_pages pages;
  std::uint64_t place = std::uint64_t{1} << 40;
  const auto write = [&](page& made) { return pages.write_page(made, place += page_bytes); };
  page leaf(tree_kind::catalog, page_kind::leaf, 0);
  const std::string value(900, 'v');
  for (std::size_t i = 0; leaf.fits(page::leaf_entry_bytes(2, value.size())); ++i)
    leaf.insert_value(i, "a" + std::string(1, static_cast<char>('b' + i)), bytes_of(value));
  page_ref below = write(leaf);
  for (std::uint8_t level = 1; level <= level_max; ++level) {
    page branch(tree_kind::catalog, page_kind::branch, level);
    branch.insert_child(0, {}, below);
    // This key leads to the first child on every level.
    for (std::size_t i = 1; branch.fits(page::branch_entry_bytes(3)); ++i) {
      const std::string key{static_cast<char>('b' + level), static_cast<char>('!' + i / 64),
                            static_cast<char>('!' + i % 64)};
      branch.insert_child(i, key, {page_bytes * i, {}});
    }
    below = write(branch);
  }
  tree full(tree_kind::catalog, pages, below, &pages);
  EXPECT_TRUE(full.find("ab"));
  try {
    full.insert("aa", bytes_of(value));
    FAIL() << "it grew";
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::unsupported) << refused.what();
  }
}

}  // namespace
}  // namespace shale::format
