// Tests attributes of levels of names and of the container, and the arrays in which the file has
// them.
#include "array/specification/level_records.hpp"

#include <functional>

#include "array/test_support.hpp"
#include "format/container/container_file.hpp"

namespace shale {
namespace {

using test::code_of;
using test::text_of;
using notes = std::vector<std::pair<std::string, std::string>>;
using names = std::vector<std::string>;

class LevelAttributes : public test::fresh_container {
 protected:
  LevelAttributes() {
    transaction change = file_.begin();
    for (const char* name : {"raw/2026/dem", "top"})
      change.create(name, {.dtype = dtype::int8, .shape = {2}});
    change.commit();
  }

  void annotate() {
    transaction change = file_.begin();
    change.set_level_attribute("", "title", attribute_value("Survey"));
    change.set_level_attribute("", "version", attribute_value(3));
    change.set_level_attribute("raw/2026", "source", "aerial");
    change.set_level_attribute("empty/level/", "n", attribute_value(1.5));
    change.commit();
  }

  static names shown(const std::vector<level_entry>& children) {
    names all;
    for (const level_entry& child : children) all.push_back(child.name);
    return all;
  }
};

TEST_F(LevelAttributes, AreReadFromSnapshotsAndTransactions) {
  const snapshot before = file_.latest();
  annotate();
  const snapshot now = file_.latest();
  EXPECT_EQ(now.attribute_as<std::string>("title"), "Survey");
  EXPECT_EQ(now.attribute_as<std::int64_t>("version"), 3);
  EXPECT_EQ(now.attribute_as<std::string>("source", "raw/2026"), "aerial");
  EXPECT_EQ(now.attribute_as<std::string>("source", "raw/2026/"), "aerial");
  EXPECT_EQ(now.typed_attribute("n", "empty/level"), attribute_value(1.5));
  EXPECT_EQ(now.attribute_as<std::string>("title", "raw"), std::nullopt);
  EXPECT_EQ(now.attribute_as<bool>("none"), std::nullopt);
  EXPECT_EQ(now.attributes("raw/2026"), (notes{{"source", "aerial"}}));
  EXPECT_EQ(now.attributes().size(), 2u);
  EXPECT_TRUE(now.attributes("/").empty());
  EXPECT_EQ(now.levels_with_attributes(), (names{"", "empty/level", "raw/2026"}));
  EXPECT_TRUE(before.attributes().empty());
  EXPECT_TRUE(before.levels_with_attributes().empty());
  const transaction change = file_.begin();
  EXPECT_EQ(change.level_attributes("raw/2026"), (notes{{"source", "aerial"}}));
  EXPECT_TRUE(change.level_attributes("raw").empty());
  EXPECT_EQ(test::findings_of(file_), "");
}

TEST_F(LevelAttributes, AreNoArrays) {
  annotate();
  const snapshot now = file_.latest();
  EXPECT_EQ(now.names(), (names{"raw/2026/dem", "top"}));
  EXPECT_EQ(now.names({}, {}, 1), names{"raw/2026/dem"});
  EXPECT_EQ(shown(now.children()), (names{"empty/", "raw/", "top"}));
  EXPECT_EQ(shown(now.children("raw/2026", {}, 1)), names{"raw/2026/dem"});
  EXPECT_TRUE(now.children("empty/level").empty());
  EXPECT_FALSE(now.find(".attributes"));
  EXPECT_FALSE(now.find("raw/2026/.attributes"));
  EXPECT_EQ(code_of([&] { now.at(".attributes"); }), errc::not_found);
  EXPECT_NE(text_of([&] { now.at(".attributes"); }).find("generation 3 holds 2 arrays"),
            std::string::npos);
  for (const array_space& space : file_.space().arrays)
    EXPECT_EQ(space.name.find(".attributes"), std::string::npos);
  transaction change = file_.begin();
  EXPECT_EQ(change.names(), now.names());
  EXPECT_EQ(change.children(), now.children());
  EXPECT_FALSE(change.find(".attributes"));
  const std::vector<std::function<void()>> calls{
      [&] { change.update(".attributes"); },
      [&] { change.remove(".attributes"); },
      [&] { change.rename(".attributes", "x"); },
      [&] { change.resize(".attributes", {3}); },
      [&] { change.append(".attributes", expr(tensor::zeros({1}, dtype::boolean))); },
      [&] { change.set_attribute(".attributes", "k", "v"); },
      [&] { change.remove_attribute(".attributes", "title"); }};
  for (const auto& call : calls) EXPECT_EQ(code_of(call), errc::not_found);
  for (const char* name : {".attributes", "a/.attributes", ".attributes/x", "a/.attributes/x/y"}) {
    EXPECT_EQ(code_of([&] { change.create(name, expr(1)); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { change.create_or_replace(name, expr(1)); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { change.rename("top", name); }), errc::invalid_argument);
  }
  for (const char* level : {".attributes", "a/.attributes", ".attributes/x"})
    EXPECT_EQ(code_of([&] { change.set_level_attribute(level, "k", "v"); }),
              errc::invalid_argument);
  change.create("attributes", expr(1));
  change.create("x.attributes", expr(1));
  change.create("y.attributes/y", expr(1));
}

TEST_F(LevelAttributes, GoWithTheLastOne) {
  annotate();
  transaction change = file_.begin();
  change.remove_level_attribute("", "title");
  change.remove_level_attribute("empty/level", "n");
  EXPECT_EQ(code_of([&] { change.remove_level_attribute("", "title"); }), errc::not_found);
  EXPECT_EQ(code_of([&] { change.remove_level_attribute("top", "title"); }), errc::not_found);
  const auto misspelt = [&] { change.remove_level_attribute("", "versoin"); };
  EXPECT_NE(text_of(misspelt).find("did you mean 'version'?"), std::string::npos);
  change.commit();
  EXPECT_EQ(file_.latest().levels_with_attributes(), (names{"", "raw/2026"}));
  EXPECT_EQ(shown(file_.latest().children()), (names{"raw/", "top"}));
  EXPECT_EQ(test::findings_of(file_), "");
}

TEST_F(LevelAttributes, AreRefusedWhereAnArrayStands) {
  transaction change = file_.begin();
  const auto set = [&](std::string_view level) {
    return [&change, level] { change.set_level_attribute(level, "k", "v"); };
  };
  EXPECT_EQ(code_of(set("top")), errc::already_exists);
  EXPECT_NE(text_of(set("top")).find("'top' is an array"), std::string::npos);
  EXPECT_EQ(code_of(set("top/below")), errc::already_exists);
  EXPECT_EQ(code_of(set("a//b")), errc::invalid_argument);
  EXPECT_EQ(code_of(set("/")), errc::invalid_argument);
  EXPECT_EQ(code_of(set("..")), errc::invalid_argument);
  EXPECT_EQ(code_of(set(std::string(1020, 'x'))), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { change.set_level_attribute("", "k", std::string(64u << 20, 'x')); }),
            errc::invalid_argument);
  change.set_level_attribute("level", "k", "v");
  EXPECT_EQ(code_of([&] { change.create("level", expr(1)); }), errc::already_exists);
  change.commit();
  EXPECT_EQ(file_.latest().attributes("level"), (notes{{"k", "v"}}));
}

TEST_F(LevelAttributes, OfAnotherKindAreRefusedWithLevelAttributeAndKinds) {
  annotate();
  const snapshot now = file_.latest();
  const auto of_level = [&] { static_cast<void>(now.attribute_as<double>("source", "raw/2026")); };
  EXPECT_EQ(code_of(of_level), errc::invalid_argument);
  for (const char* part : {"'source'", "level 'raw/2026' in ", "wanted double, got text"})
    EXPECT_NE(text_of(of_level).find(part), std::string::npos) << part;
  const auto of_file = [&] { static_cast<void>(now.attribute_as<bool>("version")); };
  EXPECT_NE(text_of(of_file).find("read attribute 'version' of " + path_), std::string::npos);
}

// What the document says, seen by a program that does not know it.
TEST_F(LevelAttributes, AreThoseOfEmptyArraysToOlderPrograms) {
  annotate();
  auto raw = format::container_file::open(format::posix_files(), path_, format::open_access::read);
  const auto record = raw.latest().find("raw/2026/.attributes");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->dtype, dtype::boolean);
  EXPECT_EQ(record->shape, (dims{0}));
  EXPECT_TRUE(record->is_dense());
  EXPECT_EQ(record->attributes, (notes{{"source", "aerial"}}));
  EXPECT_TRUE(raw.latest().find(".attributes"));
}

// Arrays of older files may have the reserved name.
TEST_F(LevelAttributes, LeaveArraysOfOlderFilesReadable) {
  write_new("flags", {.dtype = dtype::boolean, .shape = {2}}, expr(true));
  {
    auto raw =
        format::container_file::open(format::posix_files(), path_, format::open_access::write);
    auto change = raw.begin(std::chrono::milliseconds(0));
    change.rename("flags", ".attributes");
    change.commit();
  }
  EXPECT_EQ(file_.latest().names(), (names{".attributes", "raw/2026/dem", "top"}));
  EXPECT_EQ(at(".attributes").size(), 2);
  EXPECT_TRUE(file_.latest().attributes().empty());
  transaction change = file_.begin();
  EXPECT_EQ(code_of([&] { change.set_level_attribute("", "k", "v"); }), errc::already_exists);
  change.rename(".attributes", "flags");
  change.set_level_attribute("", "k", "v");
  change.commit();
  EXPECT_EQ(file_.latest().attributes(), (notes{{"k", "v"}}));
}

TEST(LevelRecords, HaveReservedNames) {
  EXPECT_EQ(arrays::level_record_name(""), ".attributes");
  EXPECT_EQ(arrays::level_record_name("a/b"), "a/b/.attributes");
  EXPECT_EQ(arrays::level_record_name("a/b/"), "a/b/.attributes");
  EXPECT_EQ(arrays::level_record_name("/"), "/.attributes");  // of names that begin with '/'
  EXPECT_GT(arrays::level_record_name(std::string(5000, 'x')).size(), 1024u);
  for (const char* level : {"", "a", "a/b"}) {
    const std::string name = arrays::level_record_name(level);
    EXPECT_TRUE(arrays::is_reserved_name(name));
    EXPECT_EQ(arrays::level_of_record(name), level);
    EXPECT_TRUE(arrays::is_level_record(arrays::make_level_record(name)));
  }
  for (const char* name : {"", "a", "x.attributes", ".attributes/a", ".attribute", "attributes"})
    EXPECT_FALSE(arrays::is_reserved_name(name)) << name;
}

}  // namespace
}  // namespace shale
