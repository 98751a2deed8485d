#include "array/specification/new_names.hpp"

#include <functional>

#include "array/test_support.hpp"
#include "format/container/container_file.hpp"
#include "shale/level_entry.hpp"
#include "support/failures.hpp"

namespace shale {
namespace {

using test::code_of;
using test::text_of;

// Names that the format allows, but that no new array can get.
const std::vector<std::string> odd_names = {"/",  "/a",   "a/",  "a//b", "//",    ".",
                                            "..", "a/..", "./a", "...",  "a/./b", "a//"};

class OddNames : public test::fresh_container {};

std::string problem_of(std::string_view name) {
  return text_of([&] { arrays::require_new_name(name); });
}

TEST(NewNames, AreLevelsThatHaveNames) {
  for (const char* name : {"a", "a/b", "raw/2026/dem", ".a", "a.", "a..b", "x[0]", " a b ", "höhe",
                           "a\\b", "-", "a:b", "*"})
    EXPECT_NO_THROW(arrays::require_new_name(name)) << name;
  for (const std::string& name : odd_names)
    EXPECT_EQ(code_of([&] { arrays::require_new_name(name); }), errc::invalid_argument) << name;
}

TEST(NewNames, AreRefusedWithThePartAndTheReason) {
  EXPECT_NE(problem_of("/a").find("begins with '/'"), std::string::npos);
  EXPECT_NE(problem_of("a/").find("ends with '/'"), std::string::npos);
  EXPECT_NE(problem_of("ab//c").find("empty, byte 3"), std::string::npos);
  EXPECT_NE(problem_of("ab/../c").find("level '..' at byte 3"), std::string::npos);
  EXPECT_NE(problem_of("").find("1 to 1024 bytes"), std::string::npos);
  EXPECT_NE(problem_of("a\x07").find("control"), std::string::npos);
  EXPECT_NE(problem_of("a\xff").find("UTF-8"), std::string::npos);
}

// Makes arrays with these names like another program: the format allows more names than containers
// give.
TEST_F(OddNames, StayReadableRenamableAndRemovable) {
  for (const std::string& name : odd_names) {
    write_new("plain", {.dtype = dtype::int32, .shape = {3}}, arange(0, 3, 1, dtype::int32));
    {
      auto raw =
          format::container_file::open(format::posix_files(), path_, format::open_access::write);
      auto change = raw.begin(std::chrono::milliseconds(0));
      change.rename("plain", name);
      change.commit();
    }
    EXPECT_EQ(file_.latest().names(), std::vector<std::string>{name});
    EXPECT_EQ(at(name).read().at({2}), scalar(2)) << name;
    transaction change = file_.begin();
    change.set_attribute(name, "unit", "m");
    change.update(name).write(expr(7));
    EXPECT_EQ(code_of([&] { change.rename(name, "a//b"); }), errc::invalid_argument);
    change.commit();
    EXPECT_EQ(at(name).read().at({2}), scalar(7)) << name;
    {
      transaction given_up = file_.begin();
      given_up.rename(name, "decent");
      EXPECT_EQ(given_up.find("decent")->attributes().size(), 1u);
    }
    transaction last = file_.begin();
    last.remove(name);
    last.commit();
  }
  EXPECT_EQ(test::findings_of(file_), "");
}

using test::fresh_container;

class Levels : public fresh_container {
 protected:
  Levels() {
    transaction change = file_.begin();
    for (const char* name : {"raw/2026/dem", "raw/2026/slope", "raw/notes", "top"})
      change.create(name, {.dtype = dtype::int8, .shape = {2}});
    change.commit();
  }

  static std::vector<std::string> shown(const std::vector<level_entry>& children) {
    std::vector<std::string> all;
    for (const level_entry& child : children) {
      EXPECT_EQ(child.is_level, child.name.ends_with('/')) << child.name;
      all.push_back(child.name);
    }
    return all;
  }

  using names = std::vector<std::string>;
};

TEST_F(Levels, HaveChildren) {
  const snapshot now = file_.latest();
  EXPECT_EQ(shown(now.children()), (names{"raw/", "top"}));
  EXPECT_EQ(shown(now.children("raw")), (names{"raw/2026/", "raw/notes"}));
  EXPECT_EQ(shown(now.children("raw/", "raw/2026/")), names{"raw/notes"});
  EXPECT_EQ(shown(now.children("raw/", {}, 1)), names{"raw/2026/"});
  EXPECT_EQ(shown(now.children("top")), names{});
}

TEST_F(Levels, AppearAndGoWithTheirArrays) {
  transaction change = file_.begin();
  change.create("new/level/x", {.dtype = dtype::int8, .shape = {2}});
  EXPECT_EQ(shown(change.children()), (names{"new/", "raw/", "top"}));
  change.remove("raw/notes");
  change.rename("raw/2026/dem", "dem");
  change.remove("raw/2026/slope");
  EXPECT_EQ(shown(change.children()), (names{"dem", "new/", "top"}));
  EXPECT_EQ(shown(file_.latest().children()), (names{"raw/", "top"}));
  change.commit();
  EXPECT_EQ(shown(file_.latest().children()), (names{"dem", "new/", "top"}));
}

TEST_F(Levels, AreNotArraysAtTheSameTime) {
  transaction change = file_.begin();
  const array_spec spec{.dtype = dtype::int8, .shape = {2}};
  const std::vector<std::function<void(std::string_view)>> calls{
      [&](std::string_view name) { change.create(name, spec); },
      [&](std::string_view name) { change.create(name, expr(1)); },
      [&](std::string_view name) { change.create_or_replace(name, spec); },
      [&](std::string_view name) { change.create_or_replace(name, expr(1)); },
      [&](std::string_view name) { change.rename("top", name); }};
  for (const auto& call : calls) {
    for (const char* name : {"raw", "raw/2026", "raw/notes/x", "raw/2026/dem/y/z"})
      EXPECT_EQ(code_of([&] { call(name); }), errc::already_exists) << name;
    const std::string of_level = text_of([&] { call("raw/2026"); });
    EXPECT_NE(of_level.find("'raw/2026' cannot name an array"), std::string::npos) << of_level;
    EXPECT_NE(of_level.find("which holds 'raw/2026/dem'"), std::string::npos) << of_level;
    const std::string below = text_of([&] { call("raw/notes/x"); });
    EXPECT_NE(below.find("its level 'raw/notes' is an array"), std::string::npos) << below;
  }
  EXPECT_EQ(change.names(), (names{"raw/2026/dem", "raw/2026/slope", "raw/notes", "top"}));
  change.commit();
  EXPECT_EQ(test::findings_of(file_), "");
}

// The name that an array gives up stands in nobody's way.
TEST_F(Levels, CanTakeTheNameOfTheArrayThatMovesThere) {
  transaction change = file_.begin();
  change.rename("top", "top/inside");
  change.rename("top/inside", "top");
  change.rename("top", "top/inside/deep");
  change.rename("top/inside/deep", "top/inside");
  change.commit();
  EXPECT_EQ(shown(file_.latest().children("top")), names{"top/inside"});
}

// Older files may have both.
TEST_F(Levels, OfOlderFilesMayBeArraysToo) {
  {
    auto raw =
        format::container_file::open(format::posix_files(), path_, format::open_access::write);
    auto change = raw.begin(std::chrono::milliseconds(0));
    change.rename("top", "raw");
    change.commit();
  }
  EXPECT_EQ(shown(file_.latest().children()), (names{"raw", "raw/"}));
  EXPECT_EQ(at("raw").size(), 2);
  transaction change = file_.begin();
  change.create_or_replace("raw", expr(1));  // it is there already
  change.update("raw").write(expr(3));
  EXPECT_EQ(code_of([&] { change.create("raw/x", expr(1)); }), errc::already_exists);
  change.rename("raw", "top");
  change.commit();
  EXPECT_EQ(shown(file_.latest().children()), (names{"raw/", "top"}));
}

TEST_F(OddNames, AreGivenToNoArray) {
  transaction change = file_.begin();
  change.create("a", {.shape = {1}});
  for (const std::string& name : odd_names) {
    EXPECT_EQ(code_of([&] { change.create(name, {.shape = {1}}); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { change.rename("a", name); }), errc::invalid_argument);
  }
  change.commit();
  EXPECT_EQ(file_.latest().names(), std::vector<std::string>{"a"});
}

}  // namespace
}  // namespace shale
