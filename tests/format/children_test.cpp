// Tests levels of names: the children of a level, found in a catalog without what lies below them.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "format/catalog/catalog.hpp"
#include "format/memory_pages.hpp"
#include "shale/error.hpp"
#include "shale/level_entry.hpp"
#include "support/failures.hpp"

namespace shale::format {
namespace {

using test::memory_pages;
using entries = std::vector<level_entry>;

// A catalog whose descriptors are not looked at.
tree catalog_of(const std::set<std::string>& names, memory_pages& pages) {
  tree catalog(tree_kind::catalog, pages, {}, &pages);
  const std::vector<std::byte> descriptor(200);
  for (const std::string& name : names) catalog.insert(name, descriptor);
  return catalog;
}

// Looks at every name: those that begin with the level's path, cut behind the next '/'.
entries children_in(const std::set<std::string>& names, std::string level,
                    const std::string& after) {
  if (!level.empty() && level.back() != '/') level += '/';
  std::set<std::pair<std::string, bool>> found;
  for (const std::string& name : names) {
    if (name.compare(0, level.size(), level) != 0) continue;
    const std::size_t slash = name.find('/', level.size());
    if (slash == std::string::npos) found.emplace(name, false);
    else found.emplace(name.substr(0, slash + 1), true);
  }
  entries children;
  for (const auto& [name, is_level] : found)
    if (name > after) children.push_back({name, is_level});
  return children;
}

entries all_children(const tree& catalog, std::string_view level) {
  return list_children(catalog, level, {}, SIZE_MAX);
}

TEST(Children, AreArraysAndLevels) {
  memory_pages pages;
  const tree catalog = catalog_of({"a", "a-b", "b/x", "b/y/1", "b/y/2", "b0", "c/1/2/3"}, pages);
  EXPECT_EQ(all_children(catalog, ""),
            (entries{{"a", false}, {"a-b", false}, {"b/", true}, {"b0", false}, {"c/", true}}));
  EXPECT_EQ(all_children(catalog, "b"), (entries{{"b/x", false}, {"b/y/", true}}));
  EXPECT_EQ(all_children(catalog, "b/"), all_children(catalog, "b"));
  EXPECT_EQ(all_children(catalog, "c/1"), (entries{{"c/1/2/", true}}));
  for (const char* nothing : {"a", "a/", "b/x", "d", "b/y/1", "c/1/2/3"})
    EXPECT_TRUE(all_children(catalog, nothing).empty()) << nothing;
}

TEST(Children, AreTheSameAsThoseOfAListOfAllNames) {
  // Also names that only other programs make: empty levels, and arrays with the name of a level.
  const std::set<std::string> names{"/",
                                    "//",
                                    "/a",
                                    "a",
                                    "a/",
                                    "a//b",
                                    "a/b",
                                    "a/b/",
                                    "a/b/c",
                                    "a/b/c/d",
                                    "a/b.c",
                                    "a/b0",
                                    "a.",
                                    ".",
                                    "..",
                                    " / ",
                                    "é/ü",
                                    "é/ü/x",
                                    "z",
                                    std::string(1024, '/'),
                                    std::string(1024, 'z')};
  memory_pages pages;
  const tree catalog = catalog_of(names, pages);
  std::vector<std::string> levels{"", "/", "//", "a", "a/", "a//", "a/b", "a/b/c", "b", "é", " "};
  std::vector<std::string> positions{""};
  for (const std::string& level : levels)
    for (const level_entry& child : all_children(catalog, level)) positions.push_back(child.name);
  positions.insert(positions.end(), {"a/b/c/x", "b", "\xff"});
  for (const std::string& level : levels)
    for (const std::string& after : positions) {
      const entries expected = children_in(names, level, after);
      EXPECT_EQ(list_children(catalog, level, after, SIZE_MAX), expected) << level << ", " << after;
      EXPECT_EQ(list_children(catalog, level, after, 2),
                entries(expected.begin(),
                        expected.begin() + std::min<std::ptrdiff_t>(2, std::ssize(expected))))
          << level << ", " << after;
    }
}

TEST(Children, OfNoOrFewAreListed) {
  memory_pages pages;
  const tree empty = catalog_of({}, pages);
  EXPECT_TRUE(all_children(empty, "").empty());
  const tree catalog = catalog_of({"a/b"}, pages);
  EXPECT_TRUE(list_children(catalog, "", {}, 0).empty());
}

// Whoever prints the children of a hostile catalog prints no control characters. Names of a level
// that is skipped are not looked at.
TEST(Children, ThatAreNoNamesAreRefused) {
  memory_pages pages;
  const tree catalog = catalog_of({"a", "b/0", "b/1\x02", "c", "d\xff", "e\x1b/x"}, pages);
  const auto refused = [&](std::string_view level, std::string_view after, std::size_t limit) {
    return test::code_of([&] { list_children(catalog, level, after, limit); });
  };
  EXPECT_EQ(list_children(catalog, "", {}, 3), (entries{{"a", false}, {"b/", true}, {"c", false}}));
  EXPECT_EQ(refused("", {}, 4), errc::corrupt);
  EXPECT_EQ(refused("", "e", 1), errc::corrupt);
  EXPECT_EQ(refused("b", {}, 2), errc::corrupt);
  EXPECT_TRUE(all_children(catalog, "c").empty());
}

// A walk over all levels ends, although names of other programs may have empty levels.
TEST(Children, LeadToEachNameOnce) {
  std::set<std::string> names{"a", "a/", "a//", "/", "//x", "b/c/d"};
  memory_pages pages;
  const tree catalog = catalog_of(names, pages);
  std::vector<std::string> levels{""};
  while (!levels.empty()) {
    const std::string level = levels.back();
    levels.pop_back();
    for (const level_entry& child : all_children(catalog, level)) {
      if (child.is_level) {
        levels.push_back(child.name);
      } else {
        EXPECT_EQ(names.erase(child.name), 1u) << child.name;
      }
    }
  }
  EXPECT_TRUE(names.empty());
}

// One level has 10,000 arrays, which fill hundreds of pages.
TEST(Children, CostPagesOfTheirOwnAlone) {
  std::set<std::string> names{"a", "z"};
  for (int i = 0; i < 10'000; ++i) names.insert("group/" + std::to_string(i));
  memory_pages pages;
  tree changed = catalog_of(names, pages);
  const tree catalog(tree_kind::catalog, pages, pages.commit(changed));
  EXPECT_GT(pages.pages.size(), 300u);
  pages.loads = 0;
  EXPECT_EQ(all_children(catalog, ""), (entries{{"a", false}, {"group/", true}, {"z", false}}));
  EXPECT_LT(pages.loads, 12);
}

}  // namespace
}  // namespace shale::format
